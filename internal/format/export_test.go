package format

import "github.com/passbook-run/passbook/internal/disk"

// Of is the format of a later release, with the steps from version 1.
func Of(on disk.Disk, steps ...Step) Directories { return Directories{steps: steps, disk: on} }
