package supervisor

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/http/httpproxy"
)

// Internet in a list of addresses stands for all public ones.
const Internet = "internet"

// DirectGateway is the gateway, and the name server, of a network that pasta connects.
const DirectGateway = "198.18.0.1"

// Network is what a call with a separate network may reach. The supervisor connects for it: it serves an HTTP proxy on
// the sandbox's loopback, and the listed ports of the host's loopback there.
type Network struct {
	Addresses []string `json:"addresses"`         // [Internet], HOST, HOST:PORT, *.DOMAIN; without a port 80 and 443
	Trusted   []string `json:"trusted,omitempty"` // of the operator: their names may be of private networks
	Proxy     int      `json:"proxy"`             // port of the proxy in the sandbox
	Ports     []int    `json:"ports"`             // of the host's loopback
	Upstream  Upstream `json:"upstream,omitzero"`
	Pasta     string   `json:"pasta,omitempty"` // connects programs that know no proxy; empty: they have no network
}

// Upstream are the proxies through which the operator's own programs connect, as their variables name them.
type Upstream struct {
	HTTP  string `json:"http,omitempty"`
	HTTPS string `json:"https,omitempty"`
	No    string `json:"no,omitempty"`
}

// NewNetwork returns the network of a call that may reach these addresses.
func NewNetwork(addresses []string) *Network {
	const (
		usual        = 3128
		unprivileged = 1024 // a sandbox cannot open a port below it: only the proxy leads there
	)
	n := &Network{Addresses: addresses, Proxy: usual}
	for _, a := range addresses {
		if host, port := split(a); port >= unprivileged && loopback(host) && !slices.Contains(n.Ports, port) {
			n.Ports = append(n.Ports, port)
		}
	}
	for slices.Contains(n.Ports, n.Proxy) {
		n.Proxy++
	}
	return n
}

// Listen returns the ports of the sandbox's loopback, for [EnterVerb].
func (n *Network) Listen() string {
	ports := strconv.Itoa(n.Proxy)
	for _, p := range n.Ports {
		ports += "," + strconv.Itoa(p)
	}
	return ports
}

// loopback reports whether a host is that of the call itself. Other addresses of it are reached by the proxy.
func loopback(host string) bool { return strings.EqualFold(host, "localhost") || host == "127.0.0.1" }

// Opens reports whether a listed address leads to a server, HOST:PORT. All names of this host lead to its ports.
func Opens(address, server string) bool {
	host, port := split(strings.ToLower(server))
	if listed([]string{address}, host, port) {
		return true
	}
	_, at := split(address)
	return here(address) && here(server) && (at == port || at == 0 && (port == 80 || port == 443))
}

// here reports whether an address is one of this host.
func here(address string) bool {
	host, _ := split(address)
	ip, err := netip.ParseAddr(host)
	return loopback(host) || err == nil && !foreign(ip)
}

// onThisHost reports whether a proxy runs on this host.
func onThisHost(via *url.URL) bool {
	found, err := net.LookupHost(via.Hostname())
	if err != nil {
		return false // it cannot be reached
	}
	for _, text := range found {
		if ip, err := netip.ParseAddr(text); err == nil && !foreign(ip) {
			return true
		}
	}
	return false
}

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

func isAddress(host string) bool {
	_, err := netip.ParseAddr(host)
	return err == nil
}

// isName reports whether a host is a name that no resolver reads as an address, such as 2130706433, 0x7f.1 or 127.1.
func isName(host string) bool {
	labels := strings.Split(host, ".")
	for _, l := range labels {
		if l == "" || strings.Trim(l, "abcdefghijklmnopqrstuvwxyz0123456789_-") != "" {
			return false
		}
	}
	last := labels[len(labels)-1]
	return strings.Trim(last, "0123456789") != "" && !strings.HasPrefix(last, "0x")
}

// listed reports whether addresses contain a port of a host.
func listed(addresses []string, host string, port int) bool {
	for _, a := range addresses {
		name, at := split(strings.ToLower(a))
		if at != port && (at != 0 || port != 80 && port != 443) {
			continue
		}
		domain, any := strings.CutPrefix(name, "*")
		if host == name || any && !isAddress(host) && strings.HasSuffix(host, domain) && host != domain {
			return true
		}
	}
	return false
}

// route is the way to a server: its address, and the proxy that connects to it; nil: none.
type route struct {
	to  string
	via *url.URL
}

// errRefused is the cause of a refusal by the network of the call, not by that of the host.
var errRefused = errors.New("refused")

// route returns the way to a port of a host, or why the call may not reach it.
func (n *Network) route(scheme, host string, port int) (route, error) {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	address := net.JoinHostPort(host, strconv.Itoa(port))
	r := route{to: address}
	all, isListed := slices.Contains(n.Addresses, Internet), listed(n.Addresses, host, port)
	switch {
	case !isAddress(host) && !isName(host):
		return r, fmt.Errorf("%w: %q is neither a name nor an address", errRefused, host)
	case !all && !isListed:
		return r, fmt.Errorf("%w: %s is not in network of the pipeline's definition", errRefused, address)
	}
	ip, err := netip.ParseAddr(host)
	switch {
	case err == nil && never(ip):
		return r, fmt.Errorf("%w: %s is a link-local or metadata address", errRefused, address)
	case err == nil && !isListed && !Public(ip):
		return r, fmt.Errorf("%w: %s is an address of this host or of a private network; to allow it, add "+
			"%q to network in the pipeline's definition", errRefused, address, address)
	case err == nil || host == "localhost" && isListed: // as it is listed
		if r.via, err = n.upstream(scheme, address); err != nil {
			return r, err
		}
		return r, nil
	}
	if r.via, err = n.upstream(scheme, address); err != nil {
		return r, err
	}
	trusted := listed(n.Trusted, host, port)
	found, err := net.LookupHost(host)
	if err != nil {
		if r.via != nil && !onThisHost(r.via) { // it knows more names
			return r, nil
		}
		return r, err
	}
	for _, text := range found {
		ip, err := netip.ParseAddr(text)
		if err != nil || !Public(ip) && (!trusted || never(ip) || !foreign(ip)) {
			continue
		}
		// a proxy on this host would ask for the name again, and could connect to the host itself
		if r.via == nil || onThisHost(r.via) {
			r.to = net.JoinHostPort(text, strconv.Itoa(port))
		}
		return r, nil
	}
	return r, fmt.Errorf("%w: %s is %s, an address of this host or of a private network; to allow it, add %q to "+
		"sandbox.network in the settings of this host, if it is of a private network", errRefused, host,
		strings.Join(found, ", "), address)
}

// upstream returns the operator's proxy for an address; nil: none.
func (n *Network) upstream(scheme, address string) (*url.URL, error) {
	if n.Upstream == (Upstream{}) {
		return nil, nil
	}
	c := httpproxy.Config{HTTPProxy: n.Upstream.HTTP, HTTPSProxy: n.Upstream.HTTPS, NoProxy: n.Upstream.No}
	via, err := c.ProxyFunc()(&url.URL{Scheme: scheme, Host: address})
	if err == nil && via != nil && via.Scheme != "http" {
		err = fmt.Errorf("the proxy of this host is %s: only proxies with http:// can be used from a sandbox", via.Redacted())
	}
	if err == nil && via != nil && via.Port() == "" {
		via.Host = net.JoinHostPort(via.Hostname(), "80")
	}
	return via, err
}

// private are addresses of no public host that [netip.Addr] does not know as such.
var private = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("192.0.0.0/24"),
	netip.MustParsePrefix("198.18.0.0/15"), netip.MustParsePrefix("240.0.0.0/4"), netip.MustParsePrefix("fec0::/10"),
	netip.MustParsePrefix("64:ff9b:1::/48"),
}

// embedding are IPv6 networks whose addresses contain one of IPv4, at this byte.
var embedding = map[netip.Prefix]int{netip.MustParsePrefix("64:ff9b::/96"): 12, netip.MustParsePrefix("2002::/16"): 2}

// metadata are services of clouds that name credentials to every program of a host, beside link-local ones.
var metadata = []netip.Addr{netip.MustParseAddr("100.100.100.200"), netip.MustParseAddr("168.63.129.16"),
	netip.MustParseAddr("fd00:ec2::254")}

// plain returns the address that a packet to ip reaches.
func plain(ip netip.Addr) netip.Addr {
	ip = ip.Unmap().WithZone("")
	for p, at := range embedding {
		if p.Contains(ip) {
			raw := ip.As16()
			ip = netip.AddrFrom4([4]byte(raw[at : at+4]))
		}
	}
	return ip
}

// never reports whether no call may reach an address, listed or not.
func never(ip netip.Addr) bool {
	ip = plain(ip)
	for _, m := range metadata {
		if ip == m {
			return true
		}
	}
	return ip.IsLinkLocalUnicast() || ip.IsMulticast()
}

// Public reports whether an address is one of the Internet: not of this host, and of no private network.
func Public(ip netip.Addr) bool {
	ip = plain(ip)
	for _, p := range private {
		if p.Contains(ip) {
			return false
		}
	}
	return !ip.IsPrivate() && !never(ip) && foreign(ip)
}

// foreign reports whether an address is one of another host.
func foreign(ip netip.Addr) bool {
	ip = plain(ip)
	if ip.IsLoopback() || ip.IsUnspecified() {
		return false
	}
	own, err := net.InterfaceAddrs()
	if err != nil {
		return false
	}
	for _, a := range own {
		if p, err := netip.ParsePrefix(a.String()); err == nil && p.Addr().Unmap() == ip {
			return false
		}
	}
	return true
}
