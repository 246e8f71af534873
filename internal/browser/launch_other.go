//go:build !linux

package browser

import "syscall"

// dieWithParent does nothing: the browser ends when the worker's pipe closes.
func dieWithParent(*syscall.SysProcAttr) {}
