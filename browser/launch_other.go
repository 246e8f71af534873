//go:build !linux

package browser

import "syscall"

// dieWithParent has nothing to ask for here: the browser ends when the pipe
// from the worker closes.
func dieWithParent(*syscall.SysProcAttr) {}
