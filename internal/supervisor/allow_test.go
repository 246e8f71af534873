package supervisor

import (
	"bufio"
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// decision is about an address: whether it is allowed, and whether it is listed as an IP address.
type decision struct{ allowed, literal bool }

func TestNetworkAllows(t *testing.T) {
	n := NewNetwork([]string{"api.example.com", "git.example.com:22", "*.Example.org", "127.0.0.1:8080", "[::1]:9",
		"10.0.0.1"})
	require.Equal(t, []int{8080}, n.Ports)
	for address, want := range map[string]decision{
		"api.example.com:443": {true, false}, "API.example.com.:80": {true, false}, "api.example.com:8443": {false, false},
		"git.example.com:22": {true, false}, "git.example.com:443": {false, false}, "a.b.example.org:443": {true, false},
		"example.org:443": {false, false}, "badexample.org:443": {false, false}, "127.0.0.1:8080": {true, true},
		"127.0.0.1:7233": {false, false}, "[::1]:9": {true, true}, "10.0.0.1:80": {true, true},
		"localhost:8080": {false, false}, "xapi.example.com:443": {false, false},
	} {
		host, port := split(address)
		ok, literal := n.allows(host, port)
		require.Equal(t, want, decision{ok, literal}, address)
	}
	require.Equal(t, 3129, NewNetwork([]string{"127.0.0.1:3128"}).Proxy)
}

func TestForeignAddresses(t *testing.T) {
	for text, want := range map[string]bool{
		"127.0.0.1": false, "127.9.9.9": false, "::1": false, "0.0.0.0": false, "169.254.169.254": false, "fe80::1": false,
		"224.0.0.1": false, "192.0.2.1": true, "2001:db8::1": true,
	} {
		require.Equal(t, want, foreign(netip.MustParseAddr(text)), text)
	}
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
