package browser

import "syscall"

// dieWithParent has the kernel kill the browser when the worker dies; its
// children follow it.
func dieWithParent(a *syscall.SysProcAttr) { a.Pdeathsig = syscall.SIGKILL }
