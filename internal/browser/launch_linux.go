package browser

import "syscall"

// dieWithParent makes the kernel kill the browser with the worker; its children follow.
func dieWithParent(a *syscall.SysProcAttr) { a.Pdeathsig = syscall.SIGKILL }
