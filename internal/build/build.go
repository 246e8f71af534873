// Package build identifies the running build of Passbook.
package build

import "runtime/debug"

// Version returns the module version of this build, or "devel" if the build has none.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "devel"
	}
	return info.Main.Version
}
