package supervisor

import (
	"bufio"
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRoutes(t *testing.T) {
	listed := NewNetwork([]string{"api.example.invalid", "git.example.invalid:22", "*.Example.invalid", "127.0.0.1:8080", "[::1]:9",
		"10.0.0.1", "169.254.169.254:80", "localhost:5432", "*.0.0.1:8400"})
	require.Equal(t, []int{8080, 5432}, listed.Ports)
	require.Equal(t, 3129, NewNetwork([]string{"127.0.0.1:3128"}).Proxy)
	internet := NewNetwork([]string{Internet, "10.1.1.1:80", "127.0.0.1:8080"})
	const to, refused, unknown = "to", "refused", "unknown" // unknown: it may, but no name server knows it
	for _, row := range []struct {
		n             *Network
		address, want string
	}{
		{listed, "api.example.invalid:443", unknown}, {listed, "API.example.invalid.:80", unknown},
		{listed, "api.example.invalid:8443", refused}, {listed, "git.example.invalid:22", unknown},
		{listed, "git.example.invalid:8022", refused}, {listed, "a.b.example.invalid:443", unknown},
		{listed, "example.invalid:443", refused}, {listed, "badexample.invalid:443", refused},
		{listed, "127.0.0.1:8080", to}, {listed, "127.0.0.1:7233", refused}, {listed, "[::1]:9", to},
		{listed, "10.0.0.1:80", to}, {listed, "localhost:8080", refused}, {listed, "localhost:5432", to},
		{listed, "169.254.169.254:80", refused}, {listed, "8.8.8.8:443", refused},
		{internet, "8.8.8.8:53", to}, {internet, "[2001:4860:4860::8888]:443", to}, {internet, "10.1.1.1:80", to},
		{internet, "10.1.1.2:80", refused}, {internet, "127.0.0.1:8080", to}, {internet, "127.0.0.1:8081", refused},
		{internet, "localhost:8080", refused}, {internet, "169.254.169.254:80", refused}, {internet, "[::1]:80", refused},
		{internet, "[::ffff:127.0.0.1]:80", refused}, {internet, "[64:ff9b::7f00:1]:80", refused},
		{internet, "any.invalid:1", unknown}, {listed, "127.0.0.1:8400", refused}, {internet, "2130706433:80", refused},
		{internet, "0x7f000001:80", refused}, {internet, "127.1:80", refused}, {internet, "127.0.0.1..:80", refused},
		{internet, "10.0.0.1:80#.example.org:80", refused}, {internet, "a..invalid:80", refused},
	} {
		host, port := split(row.address)
		_, err := row.n.route("http", host, port)
		switch row.want {
		case to:
			require.NoError(t, err, row.address)
		case refused:
			require.ErrorIs(t, err, errRefused, row.address)
		default:
			require.Error(t, err, row.address)
			require.NotErrorIs(t, err, errRefused, row.address)
		}
	}
}

func TestPublicAddresses(t *testing.T) {
	for text, want := range map[string]bool{
		"127.0.0.1": false, "127.9.9.9": false, "::1": false, "0.0.0.0": false, "0.1.2.3": false, "169.254.169.254": false,
		"fe80::1": false, "224.0.0.1": false, "10.0.0.1": false, "172.16.0.1": false, "192.168.0.1": false,
		"100.64.0.1": false, "fd00::1": false, "fec0::1": false, "255.255.255.255": false, "::ffff:10.0.0.1": false,
		"64:ff9b::10.0.0.1": false, "2002:a00:1::1": false, "100.100.100.200": false, "168.63.129.16": false,
		"1.1.1.1": true, "2606:4700::1111": true, "64:ff9b::1.1.1.1": true,
	} {
		require.Equal(t, want, Public(netip.MustParseAddr(text)), text)
	}
}

// TestUpstream: where the operator's programs need a proxy, those of a sandbox connect through it.
func TestUpstream(t *testing.T) {
	n := NewNetwork([]string{Internet, "gateway.invalid:80", "127.0.0.1:8080"})
	n.Upstream = Upstream{HTTP: "http://user:word@proxy.invalid", HTTPS: "http://127.0.0.1:3128", No: "direct.invalid"}
	for _, row := range []struct{ scheme, address, via, to string }{
		{"http", "gateway.invalid:80", "proxy.invalid:80", "gateway.invalid:80"},
		{"http", "8.8.8.8:80", "proxy.invalid:80", "8.8.8.8:80"},
		{"http", "127.0.0.1:8080", "", "127.0.0.1:8080"},
	} {
		host, port := split(row.address)
		way, err := n.route(row.scheme, host, port)
		require.NoError(t, err, row.address)
		via := ""
		if way.via != nil {
			via = way.via.Host
		}
		require.Equal(t, []string{row.via, row.to}, []string{via, way.to}, row.address)
	}
	_, err := n.route("https", "any.invalid", 443)
	require.Error(t, err, "a proxy on this host is not asked for names, which may lead to this host")
	_, err = n.route("https", "direct.invalid", 443)
	require.Error(t, err, "no name server knows it, and the proxy is not asked")
	_, err = n.route("https", "127.0.0.1", 9)
	require.ErrorIs(t, err, errRefused)
	way, err := n.route("https", "8.8.8.8", 443)
	require.NoError(t, err)
	require.Equal(t, "127.0.0.1:3128", way.via.Host)
	n.Upstream.HTTPS = "socks5://proxy.invalid:1"
	_, err = n.route("https", "any.invalid", 443)
	require.ErrorContains(t, err, "only proxies with http://")
}

func TestReadRequest(t *testing.T) {
	for name, row := range map[string]struct {
		text string
		want string // host:port and the head for the server; empty: refused
	}{
		"tunnel": {"CONNECT a.org:443 HTTP/1.1\r\nHost: b.org\r\n\r\n", "a.org 443"},
		"plain": {"GET http://a.org/x?y HTTP/1.1\r\nHost: b.org\r\nA: 1\r\nProxy-B: 2\r\n\r\n",
			"a.org 80 GET /x?y HTTP/1.1\r\nHost: a.org\r\nConnection: close\r\nA: 1\r\n\r\n"},
		"no path": {"GET http://a.org:81 HTTP/1.0\r\n\r\n",
			"a.org 81 GET / HTTP/1.0\r\nHost: a.org:81\r\nConnection: close\r\n\r\n"},
		"IPv6":          {"CONNECT [::1]:7 HTTP/1.1\r\n\r\n", "::1 7"},
		"folded header": {"GET http://a.org/ HTTP/1.1\r\n keep-alive\r\n\r\n", ""},
		"spaced header": {"GET http://a.org/ HTTP/1.1\r\nConnection : keep-alive\r\n\r\n", ""},
		"bare CR":       {"GET http://a.org/ HTTP/1.1\r\nA: b\rC: d\r\n\r\n", ""},
		"odd method":    {"GE\tT http://a.org/ HTTP/1.1\r\n\r\n", ""},
		"credentials":   {"GET http://a.org@b.org/ HTTP/1.1\r\n\r\n", ""},
		"relative":      {"GET / HTTP/1.1\r\nHost: a.org\r\n\r\n", ""},
		"no port":       {"CONNECT a.org HTTP/1.1\r\n\r\n", ""},
		"https":         {"GET https://a.org/ HTTP/1.1\r\n\r\n", ""},
		"another":       {"HELO a.org\r\n\r\n", ""},
		"endless":       {strings.Repeat("a", 1<<20), ""},
		"endless lines": {"CONNECT a.org:443 HTTP/1.1\r\n" + strings.Repeat("A: b\r\n", 1<<16), ""},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := readRequest(bufio.NewReader(strings.NewReader(row.text)))
			if row.want == "" {
				require.Error(t, err)
				return
			}
			require.NoError(t, err)
			require.True(t, strings.HasPrefix(row.want, r.host+" "))
			if r.method != "CONNECT" {
				require.Contains(t, row.want, r.forServer())
			}
		})
	}
}
