// Usage runs a command and appends a line to a file: name, elapsed seconds, CPU seconds, exit code.
//
//	usage FILE NAME COMMAND...
//
// The CPU time is that of the command and of all processes that it starts. On Linux servers and workers that outlive
// the process that started them are included: they become children of this program (PR_SET_CHILD_SUBREAPER). It waits
// up to 20 seconds for them after the command has ended, and names those that are left.
package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

func main() {
	if len(os.Args) < 4 {
		fmt.Fprintln(os.Stderr, "usage: usage FILE NAME COMMAND...")
		os.Exit(2)
	}
	code, err := run(os.Args[1], os.Args[2], os.Args[3:])
	if err != nil {
		fmt.Fprintf(os.Stderr, "usage: run %s: %v\n", os.Args[2], err)
		os.Exit(1)
	}
	os.Exit(code)
}

// run executes the command and appends its line. It returns the command's exit code.
func run(file, name string, command []string) (int, error) {
	// the command receives them too, and ends
	signal.Notify(make(chan os.Signal, 1), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	if err := adoptOrphans(); err != nil {
		return 0, err
	}
	begun := time.Now()
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	code, wall := reap(cmd.Process.Pid, begun)
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_CHILDREN, &used); err != nil {
		return 0, err
	}
	cpu := time.Duration(used.Utime.Nano() + used.Stime.Nano())
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return 0, err
	}
	_, err = fmt.Fprintf(f, "%s %.0f %.0f %d\n", name, wall.Seconds(), cpu.Seconds(), code)
	return code, errors.Join(err, f.Close())
}

// reap waits for all children. It returns the exit code of the command and how long that ran.
func reap(command int, begun time.Time) (code int, wall time.Duration) {
	ended, empty := make(chan syscall.WaitStatus, 1), make(chan struct{})
	go func() {
		defer close(empty)
		for {
			var status syscall.WaitStatus
			pid, err := syscall.Wait4(-1, &status, 0, nil)
			switch {
			case errors.Is(err, syscall.EINTR):
			case err != nil:
				return // no child is left
			case pid == command:
				ended <- status
			}
		}
	}()
	status := <-ended
	wall = time.Since(begun)
	select {
	case <-empty:
	case <-time.After(20 * time.Second):
		fmt.Fprintf(os.Stderr, "usage: the command has ended, and these processes run on, without their CPU time: %s\n",
			strings.Join(children(), "; "))
	}
	if status.Signaled() {
		return 128 + int(status.Signal()), wall
	}
	return status.ExitStatus(), wall
}
