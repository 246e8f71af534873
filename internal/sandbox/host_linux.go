package sandbox

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/passbook-run/passbook/internal/environ"
)

const answersWithin = 5 * time.Second

// places are searched after PATH.
var places = []string{"/usr/bin/bwrap", "/bin/bwrap", "/usr/local/bin/bwrap"}

// Examine starts a sandbox with nothing in it, and reports what the host offers.
func Examine() Host {
	h := Host{Bwrap: find(), Landlock: landlock()}
	h.Users = namespaces()
	if os.Geteuid() == 0 {
		h.Private = private("/etc", depth)
	}
	if h.Bwrap == "" {
		h.Problem, h.Fix = "bubblewrap is not installed", install
		return h
	}
	if output, err := ask(h.Bwrap, "--version"); err == nil {
		h.Version = strings.TrimPrefix(output, "bubblewrap ")
	}
	output, err := ask(h.Bwrap, probe()...)
	if err == nil {
		_, err := ask(h.Bwrap, append([]string{"--unshare-net"}, probe()...)...)
		h.Isolation = err == nil
		h.Pasta = pasta()
		return h
	}
	h.Problem, h.Fix = "bubblewrap does not start: "+output, "allow unprivileged user namespaces"
	switch {
	case on("/proc/sys/kernel/apparmor_restrict_unprivileged_userns"):
		h.Fix = "load an AppArmor profile for " + h.Bwrap + " that allows userns"
	case os.Geteuid() != 0 && off("/proc/sys/kernel/unprivileged_userns_clone"):
		h.Fix = "sudo sysctl kernel.unprivileged_userns_clone=1"
	case off("/proc/sys/user/max_user_namespaces"):
		h.Fix = "sudo sysctl user.max_user_namespaces=10000"
	}
	return h
}

const install = "install it: sudo apt-get install bubblewrap (Debian, Ubuntu), sudo dnf install bubblewrap (Fedora)"

// probe returns the arguments of a sandbox that has everything that a call needs, and runs nothing in it.
func probe() []string {
	args := append(namespaceArgs(), systemArgs()...)
	return append(append(args, kernelArgs()...), "--", "/bin/sh", "-c", ":")
}

// depth is the number of folders below each other in which private files are looked for.
const depth = 3

// private returns what other users cannot read below a directory of the system, such as keys of services.
func private(dir string, depth int) (out []string) {
	const file, folder = 0o004, 0o005
	entries, err := os.ReadDir(dir)
	if err != nil || depth == 0 {
		return nil
	}
	known := masked()
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		fi, err := e.Info()
		switch {
		case err != nil || slices.Contains(known, path):
		case fi.IsDir() && fi.Mode().Perm()&folder != folder, fi.Mode().IsRegular() && fi.Mode().Perm()&file == 0:
			out = append(out, path)
		case fi.IsDir():
			out = append(out, private(path, depth-1)...)
		}
	}
	return out
}

func find() string {
	if path, err := environ.LookPath(Program, os.Environ()); err == nil {
		return path
	}
	for _, path := range places {
		if fi, err := os.Stat(path); err == nil && fi.Mode().Perm()&0o111 != 0 {
			return path
		}
	}
	return ""
}

// pasta returns the path of the program that connects a network namespace, if this user has the device that it needs,
// and the programs that restrict it.
func pasta() string {
	tun, err := os.OpenFile("/dev/net/tun", os.O_RDWR, 0)
	if err != nil || tun.Close() != nil {
		return ""
	}
	for _, other := range []string{"ip", "nsenter"} {
		if _, err := environ.LookPath(other, os.Environ()); err != nil {
			return ""
		}
	}
	path, err := environ.LookPath("pasta", os.Environ())
	if err != nil {
		path = ""
	}
	return path
}

// ask runs a program and returns its first line.
func ask(path string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), answersWithin)
	defer cancel()
	out, err := exec.CommandContext(ctx, path, args...).CombinedOutput()
	line, _, _ := bytes.Cut(bytes.TrimSpace(out), []byte("\n"))
	return string(line), err
}

// landlock returns the version of the kernel's Landlock interface.
func landlock() int {
	const version = 1 // LANDLOCK_CREATE_RULESET_VERSION
	v, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, version)
	if errno != 0 {
		return 0
	}
	return int(v)
}

// namespaces reports whether this user may create user namespaces, as far as the settings of the kernel show it.
func namespaces() bool {
	return !off("/proc/sys/user/max_user_namespaces") &&
		(os.Geteuid() == 0 || !off("/proc/sys/kernel/unprivileged_userns_clone"))
}

func on(file string) bool  { return setting(file) == "1" }
func off(file string) bool { return setting(file) == "0" }

func setting(file string) string {
	raw, err := os.ReadFile(file)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(raw))
}
