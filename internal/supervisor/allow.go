package supervisor

import (
	"net/netip"
	"strconv"
	"strings"
)

// Network is what a call with a separate network may reach. The supervisor connects for it: it serves an HTTP proxy on
// the sandbox's loopback, and the listed ports of the host's loopback there.
type Network struct {
	Addresses []string `json:"addresses"` // HOST, HOST:PORT, *.DOMAIN; without a port 80 and 443
	Proxy     int      `json:"proxy"`     // port of the proxy in the sandbox
	Ports     []int    `json:"ports"`     // of the host's loopback
}

// NewNetwork returns the network of a call that may reach these addresses.
func NewNetwork(addresses []string) *Network {
	const (
		usual        = 3128
		unprivileged = 1024 // a sandbox cannot open a port below it: only the proxy leads there
	)
	n := &Network{Addresses: addresses, Proxy: usual}
	for _, a := range addresses {
		if host, port := split(a); port >= unprivileged && loopback(host) {
			n.Ports = append(n.Ports, port)
		}
	}
	for has(n.Ports, n.Proxy) {
		n.Proxy++
	}
	return n
}

func has(ports []int, port int) bool {
	for _, p := range ports {
		if p == port {
			return true
		}
	}
	return false
}

// loopback reports whether a host is that of the call itself. Other addresses of it are reached by the proxy.
func loopback(host string) bool { return strings.EqualFold(host, "localhost") || host == "127.0.0.1" }

// split splits HOST:PORT; the port is 0 if there is none. An IPv6 address is in brackets.
func split(address string) (host string, port int) {
	host = address
	if i := strings.LastIndexByte(address, ':'); i >= 0 && !strings.Contains(address[i:], "]") {
		if n, err := strconv.Atoi(address[i+1:]); err == nil && n > 0 && n < 1<<16 {
			host, port = address[:i], n
		}
	}
	return strings.TrimSuffix(strings.TrimPrefix(host, "["), "]"), port
}

// allows reports whether the call may connect to a port of a host, and whether the host is listed as an IP address.
func (n *Network) allows(host string, port int) (ok, literal bool) {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	for _, a := range n.Addresses {
		listed, at := split(strings.ToLower(a))
		if at != port && (at != 0 || port != 80 && port != 443) {
			continue
		}
		if domain, any := strings.CutPrefix(listed, "*"); any && strings.HasSuffix(host, domain) && host != domain {
			return true, false
		}
		if host == listed {
			_, err := netip.ParseAddr(host)
			return true, err == nil || host == "localhost"
		}
	}
	return false, false
}
