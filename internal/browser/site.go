package browser

import (
	"crypto/rand"
	"fmt"
	"net"
	"net/http"
)

// site serves one page at a loopback address, under a random path: other users of the machine can reach the port.
type site struct {
	addr   string // 127.0.0.1:port
	path   string
	server *http.Server
}

func serve(html []byte) (*site, error) {
	// Port 0: the system picks a free one, so there is no conflict to retry.
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("serve the page on the loopback interface: %w", err)
	}
	mux, path := http.NewServeMux(), "/"+rand.Text()+"/"
	mux.HandleFunc("GET "+path+"{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Cache-Control", "no-store")
		_, _ = w.Write(html)
	})
	s := &site{addr: l.Addr().String(), path: path, server: &http.Server{Handler: mux}}
	go func() { _ = s.server.Serve(l) }() // ends with close
	return s, nil
}

func (s *site) url() string { return "http://" + s.addr + s.path }

func (s *site) close() { _ = s.server.Close() }
