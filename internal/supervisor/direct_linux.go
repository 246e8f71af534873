package supervisor

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// The network of a sandbox that pasta connects: an address, and a gateway that forwards, and answers name servers.
const (
	directAddress = "198.18.0.2"
	directPrefix  = "30"
	directWithin  = 5 * time.Second
)

// direct connects a sandbox for programs that know no proxy: pasta forwards its packets, and no route leads to this
// host, private networks or metadata services. The agent cannot change routes: it has no capability.
func (s *supervision) direct() error {
	pid := s.sandboxReport().PID
	network := fmt.Sprintf("/proc/%d/ns/net", pid)
	owner, err := ownerOf(network, pid)
	if err != nil {
		return err
	}
	ready := filepath.Join(s.dir, "pasta.pid")
	args := []string{"pasta", "--foreground", "--quiet", "--ipv4-only", "--config-net", "--no-map-gw", "--address",
		directAddress, "--netmask", directPrefix, "--gateway", DirectGateway, "--dns-forward", DirectGateway,
		"--tcp-ports", "none", "--udp-ports", "none", "--tcp-ns", "none", "--udp-ns", "none", "--pid", ready, "--userns",
		owner, "--netns", network}
	if os.Geteuid() == 0 {
		args = append(args, "--runas", "0:0") // otherwise it becomes another user, who may not enter the sandbox
	}
	output, inside, err := os.Pipe()
	if err != nil {
		return err
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		return errors.Join(err, output.Close(), inside.Close())
	}
	child, err := syscall.ForkExec(s.call.Network.Pasta, args, &syscall.ProcAttr{Dir: "/", Env: os.Environ(),
		Files: []uintptr{null.Fd(), inside.Fd(), inside.Fd()}, Sys: agentAttributes()})
	if err = errors.Join(err, inside.Close(), null.Close()); err != nil {
		return errors.Join(fmt.Errorf("start %s: %w", s.call.Network.Pasta, err), output.Close())
	}
	s.pasta.Store(int64(child))
	if err := awaitReady(ready, output); err != nil {
		return err
	}
	return routes(owner, network)
}

// ownerOf returns the user namespace to which the network of a process belongs. That of the process itself may be
// within it. Root may open only the latter, and is in one.
func ownerOf(network string, pid int) (string, error) {
	if os.Geteuid() == 0 {
		return fmt.Sprintf("/proc/%d/ns/user", pid), nil
	}
	f, err := os.Open(network)
	if err != nil {
		return "", err
	}
	const getUserNamespace = 0xb701 // NS_GET_USERNS
	fd, _, errno := syscall.Syscall(syscall.SYS_IOCTL, f.Fd(), getUserNamespace, 0)
	if err = f.Close(); errno != 0 {
		return "", fmt.Errorf("find the owner of %s: %w", network, errno)
	}
	return fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), fd), err
}

// awaitReady waits until pasta has configured the network: it writes the file then. Its output has the cause of a failure.
func awaitReady(file string, output *os.File) error {
	ended := make(chan string, 1)
	go func() {
		raw, err := io.ReadAll(output)
		if err = errors.Join(err, output.Close()); err != nil {
			raw = []byte(err.Error())
		}
		ended <- string(bytes.TrimSpace(raw))
	}()
	late := time.After(directWithin)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for {
		if fi, err := os.Stat(file); err == nil && fi.Size() > 0 {
			return nil
		}
		select {
		case why := <-ended:
			return fmt.Errorf("pasta ended: %s", why)
		case <-late:
			return fmt.Errorf("pasta is not ready after %s", directWithin)
		case <-tick.C:
		}
	}
}

// routes makes everything unreachable that is not public.
func routes(owner, network string) error {
	var batch strings.Builder
	for _, p := range append([]netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("172.16.0.0/12"),
		netip.MustParsePrefix("192.168.0.0/16"), netip.MustParsePrefix("169.254.0.0/16"),
		netip.MustParsePrefix("224.0.0.0/4")}, private...) {
		if p.Addr().Is4() {
			fmt.Fprintf(&batch, "route add unreachable %s\n", p)
		}
	}
	own, err := net.InterfaceAddrs()
	if err != nil {
		return err
	}
	hosts := metadata[:len(metadata):len(metadata)]
	for _, a := range own {
		if p, err := netip.ParsePrefix(a.String()); err == nil && !p.Addr().IsLoopback() {
			hosts = append(hosts, p.Addr())
		}
	}
	for _, h := range hosts {
		if h.Is4() {
			fmt.Fprintf(&batch, "route replace unreachable %s/32\n", h)
		}
	}
	const script = `printf %s "$3" | nsenter --preserve-credentials --user="$1" --net="$2" ip -batch - && echo done`
	output, inside, err := os.Pipe()
	if err != nil {
		return err
	}
	child, err := syscall.ForkExec("/bin/sh", []string{"sh", "-c", script, "routes", owner, network, batch.String()},
		&syscall.ProcAttr{Dir: "/", Env: os.Environ(), Files: []uintptr{inside.Fd(), inside.Fd(), inside.Fd()},
			Sys: agentAttributes()})
	if err = errors.Join(err, inside.Close()); err != nil {
		return errors.Join(err, output.Close())
	}
	late := time.AfterFunc(directWithin, func() { _ = syscall.Kill(-child, syscall.SIGKILL) })
	raw, err := io.ReadAll(output)
	late.Stop()
	if text := string(bytes.TrimSpace(raw)); err == nil && text != "done" {
		err = errors.New(text)
	}
	if err = errors.Join(err, output.Close()); err != nil {
		return fmt.Errorf("restrict the routes of the sandbox: %w", err)
	}
	return nil
}

// prepare connects the sandbox, and returns whether it may start.
func (s *supervision) prepare(socket int) bool {
	if s.call.Network.Pasta != "" {
		runtime.LockOSThread() // the end of the thread would end pasta
		if err := s.direct(); err != nil {
			s.endPasta()
			note := fmt.Sprintf("%s: programs that use no proxy have no network: %v\n", Program, err)
			if _, err := s.stderr.WriteString(note); err != nil {
				return false
			}
		}
	}
	_, err := syscall.Write(socket, []byte{1})
	return err == nil
}
