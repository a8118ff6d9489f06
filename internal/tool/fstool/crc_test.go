package fstool_test

import "hash/crc32"

func crcOf(chunk []byte) uint32 { return crc32.ChecksumIEEE(chunk) }
