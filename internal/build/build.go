// Package build identifies the running build of Passbook.
package build

import (
	"fmt"
	"os"
	"runtime/debug"
)

// Version returns the module version of this build, or "devel" if the build has none.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "devel"
	}
	return info.Main.Version
}

// ID identifies a build by its version and by size and time of its program file, which may be a later build of the same
// version. It does not read the file.
func ID(program string) string {
	fi, err := os.Stat(program)
	if err != nil {
		return Version()
	}
	return fmt.Sprintf("%s-%d-%d", Version(), fi.Size(), fi.ModTime().UnixNano())
}
