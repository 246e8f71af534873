package format

import "github.com/passbook-run/passbook/internal/durable"

// Of is the format of a later release, with the steps from version 1.
func Of(disk durable.Disk, steps ...Step) Directories { return Directories{steps: steps, disk: disk} }
