package supervisor

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// EnterVerb makes the supervisor's program prepare a sandbox's network from inside: it opens the ports, hands them to
// the supervisor, and becomes the agent. Its arguments are the ports, the program, and the program's arguments.
const EnterVerb = "enter"

// networkFD is the socket to the supervisor.
const networkFD = 4

// notEntered is the exit code of a sandbox whose network could not be prepared.
const notEntered = 125

func enter(args []string) int {
	err := fmt.Errorf("usage: %s PORTS PROGRAM [ARGUMENTS]", EnterVerb)
	if len(args) >= 2 {
		if err = handOver(strings.Split(args[0], ",")); err == nil {
			err = syscall.Exec(args[1], args[1:], os.Environ())
		}
	}
	fmt.Fprintln(os.Stderr, "prepare the network:", err)
	return notEntered
}

// handOver opens ports on the sandbox's loopback and sends them to the supervisor.
func handOver(ports []string) error {
	var fds []int
	for _, text := range ports {
		port, err := strconv.Atoi(text)
		if err != nil {
			return err
		}
		fd, err := listen(port)
		if err != nil {
			return fmt.Errorf("listen on port %d: %w", port, err)
		}
		fds = append(fds, fd)
	}
	if err := syscall.Sendmsg(networkFD, []byte{1}, syscall.UnixRights(fds...), nil, 0); err != nil {
		return err
	}
	n, err := syscall.Read(networkFD, make([]byte, 1)) // when the network is ready
	if err == nil && n == 0 {
		err = errors.New("the supervisor has ended")
	}
	return errors.Join(err, syscall.Close(networkFD))
}

func listen(port int) (int, error) {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return -1, err
	}
	const backlog = 128
	return fd, syscall.Listen(fd, backlog)
}

// prepareNetwork returns the sandbox's end of a socket, on which its listeners arrive, and starts to wait for them.
func (s *supervision) prepareNetwork() (*os.File, error) {
	pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	s.entered = make(chan bool, 1)
	go func() {
		s.entered <- s.receive(pair[0])
		if s.pasta.Load() > 0 {
			select {} // the end of the thread would end it
		}
	}()
	return os.NewFile(uintptr(pair[1]), "network"), nil
}

// receive waits for the listeners and serves them. It returns false if the sandbox ended before.
func (s *supervision) receive(socket int) bool {
	data, control := make([]byte, 1), make([]byte, syscall.CmsgSpace(4*(1+len(s.call.Network.Ports))))
	n, size, _, _, err := syscall.Recvmsg(socket, data, control, syscall.MSG_CMSG_CLOEXEC)
	for err == syscall.EINTR {
		n, size, _, _, err = syscall.Recvmsg(socket, data, control, syscall.MSG_CMSG_CLOEXEC)
	}
	ready := err == nil && n > 0 && s.connect(control[:size]) && s.prepare(socket)
	return syscall.Close(socket) == nil && ready
}

// connect serves the listeners that the sandbox sent.
func (s *supervision) connect(control []byte) bool {
	messages, err := syscall.ParseSocketControlMessage(control)
	if err != nil || len(messages) != 1 {
		return false
	}
	fds, err := syscall.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 1+len(s.call.Network.Ports) {
		return false
	}
	var listeners []*os.File
	for _, fd := range fds {
		listeners = append(listeners, os.NewFile(uintptr(fd), "listener"))
	}
	s.call.Network.forward(listeners)
	return true
}
