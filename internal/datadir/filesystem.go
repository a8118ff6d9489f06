package datadir

import "fmt"

func refuseFileSystem(path, kind string) error {
	return fmt.Errorf("%w: %s is on %s, where locks and synced data are not safe; choose a directory on a local disk", ErrNetwork, path, kind)
}
