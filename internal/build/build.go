// Package build identifies the running build of Passbook.
package build

import (
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
)

// version of a release, such as v0.1.0: set by the linker (-X). Empty in other builds.
var version string

// Devel is the version of a build that is neither a release nor of a module version.
const Devel = "devel"

// Version returns the version of this release, the module version of another build, or [Devel].
func Version() string {
	if version != "" {
		return version
	}
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" || info.Main.Version == "(devel)" {
		return Devel
	}
	return info.Main.Version
}

// ID identifies a build by its version and by size and time of its program file, which may be a later build of the same
// version. It does not read the file. The numbers are short, because each event of a history contains the ID.
func ID(program string) string {
	fi, err := os.Stat(program)
	if err != nil {
		return Version()
	}
	return fmt.Sprintf("%s-%s-%s", Version(), strconv.FormatInt(fi.Size(), 36),
		strconv.FormatInt(fi.ModTime().UnixNano(), 36))
}
