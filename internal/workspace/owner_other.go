//go:build !unix

package workspace

import (
	"io/fs"
	"os"
)

// keepOwner does nothing: files have no owner that could be given here.
func keepOwner(*os.File, fs.FileInfo) {}
