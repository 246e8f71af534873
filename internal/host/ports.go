package host

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"time"
)

// ports of a server.
type ports struct{ server, ui int }

// choosePorts returns the first free port of each list, or any free one. Both are held until both are chosen.
func choosePorts(server, ui []int) (ports, error) {
	a, err := listenFirst(server)
	if err != nil {
		return ports{}, err
	}
	defer a.Close()
	b, err := listenFirst(ui)
	if err != nil {
		return ports{}, err
	}
	defer b.Close()
	return ports{server: a.Addr().(*net.TCPAddr).Port, ui: b.Addr().(*net.TCPAddr).Port}, nil
}

func listenFirst(wanted []int) (net.Listener, error) {
	for _, port := range wanted {
		if port == 0 {
			continue
		}
		if l, err := net.Listen("tcp", loopback(port)); err == nil {
			return l, nil
		}
	}
	l, err := net.Listen("tcp", loopback(0))
	if err != nil {
		return nil, fmt.Errorf("find a free port: %w", err)
	}
	return l, nil
}

// awaitRelease waits a moment until the ports of the last server are free. If it was killed, its process counts as
// ended while the kernel still closes its sockets, and workers know the server by its port.
func awaitRelease(ctx context.Context, last ports) {
	const most = 2 * time.Second
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for !last.free() {
		select {
		case <-ctx.Done():
			return // another process has one
		case <-tick.C:
		}
	}
}

// free reports whether both ports can be bound now.
func (p ports) free() bool {
	for _, port := range []int{p.server, p.ui} {
		l, err := net.Listen("tcp", loopback(port))
		if err != nil {
			return false
		}
		l.Close()
	}
	return true
}

func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// portOf returns the port of host:port or of a URL; 0: there is none.
func portOf(address string) int {
	if u, err := url.Parse(address); err == nil && u.Host != "" {
		address = u.Host
	}
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return 0
	}
	n, err := strconv.Atoi(port)
	if err != nil {
		return 0
	}
	return n
}
