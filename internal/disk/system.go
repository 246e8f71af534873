package disk

import (
	"errors"
	"fmt"
)

// SyncFileSystem makes everything durable that was written to the file system of a folder, by anyone. It is one call
// for any number of files. Where the system cannot do this, the folder and everything in it are synced.
func (d Disk) SyncFileSystem(folder string) error {
	if err := d.before(OpSyncSystem, folder); err != nil {
		return err
	}
	f, err := d.openFolder(folder)
	if err != nil {
		return err
	}
	err = syncSystem(f)
	if errors.Is(err, errors.ErrUnsupported) {
		err = d.SettleAll(folder)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("make what was written in %s durable: %w", folder, err)
	}
	return nil
}
