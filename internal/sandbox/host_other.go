//go:build !linux

package sandbox

// Examine reports that this system has no sandbox.
func Examine() Host {
	return Host{
		Problem: "sandboxes need the namespaces of Linux",
		Fix:     "run the worker on Linux",
	}
}
