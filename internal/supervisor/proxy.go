package supervisor

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"time"
)

const (
	maxHead        = 64 << 10
	maxConnections = 256 // at the same time
	connectWithin  = 30 * time.Second
)

// forward serves the listeners of a sandbox: the first is the proxy, the others are ports of the host's loopback.
func (n *Network) forward(listeners []*os.File) {
	slots := make(chan struct{}, maxConnections)
	for i, file := range listeners {
		l, err := net.FileListener(file)
		if err != nil || file.Close() != nil {
			continue // its clients see a closed port
		}
		serve := n.proxy
		if i > 0 {
			to := net.JoinHostPort("127.0.0.1", strconv.Itoa(n.Ports[i-1]))
			serve = func(c net.Conn) error { return connect(c, c, to, nil) }
		}
		go accept(l, slots, serve)
	}
}

func accept(l net.Listener, slots chan struct{}, serve func(net.Conn) error) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		slots <- struct{}{}
		go func() {
			defer func() { <-slots }()
			if serve(c) != nil {
				return // the client has the reason
			}
		}()
	}
}

// request is the first line of an HTTP request to a proxy, and its header.
type request struct {
	method, path, version string
	host                  string
	port                  int
	header                []string
}

// proxy serves one connection: CONNECT, or one plain HTTP request.
func (n *Network) proxy(c net.Conn) (err error) {
	in := bufio.NewReaderSize(c, 4<<10)
	if err := c.SetReadDeadline(time.Now().Add(connectWithin)); err != nil {
		return errors.Join(err, c.Close())
	}
	r, err := readRequest(in)
	if err != nil {
		return refuse(c, "400 Bad Request", err.Error())
	}
	if err := c.SetReadDeadline(time.Time{}); err != nil {
		return errors.Join(err, c.Close())
	}
	scheme := "http"
	if r.method == connectMethod {
		scheme = "https"
	}
	way, err := n.route(scheme, r.host, r.port)
	switch {
	case errors.Is(err, errRefused):
		return refuse(c, "403 Forbidden", err.Error())
	case err != nil:
		return refuse(c, "502 Bad Gateway", err.Error())
	case way.via != nil:
		return connect(c, in, way.via.Host, func(server net.Conn) error { return r.through(way, c, server) })
	case r.method == connectMethod:
		return connect(c, in, way.to, func(net.Conn) error { return established(c) })
	}
	return connect(c, in, way.to, func(server net.Conn) error {
		_, err := io.WriteString(server, r.forServer())
		return err
	})
}

const connectMethod = "CONNECT"

func established(c net.Conn) error {
	_, err := io.WriteString(c, "HTTP/1.1 200 Connection established\r\n\r\n")
	return err
}

// through sends the request to the proxy of the host, whose answer to CONNECT it checks.
func (r request) through(way route, c, server net.Conn) error {
	auth := ""
	if user := way.via.User; user != nil {
		password, _ := user.Password()
		auth = "Proxy-Authorization: Basic " +
			base64.StdEncoding.EncodeToString([]byte(user.Username()+":"+password)) + "\r\n"
	}
	if named, _ := split(way.to); r.method != connectMethod && named != strings.ToLower(strings.TrimSuffix(r.host, ".")) {
		if err := tunnel(server, server, way.to, auth); err != nil {
			return err
		}
		_, err := io.WriteString(server, r.forServer())
		return err
	}
	if r.method != connectMethod {
		r.path = "http://" + way.to + r.path
		first, rest, _ := strings.Cut(r.forServer(), "\r\n")
		_, err := io.WriteString(server, first+"\r\n"+auth+rest)
		return err
	}
	if err := tunnel(server, server, way.to, auth); err != nil {
		return err
	}
	return established(c)
}

// tunnel asks a proxy for a connection to a server.
func tunnel(proxy io.Writer, answers io.Reader, to, auth string) error {
	if _, err := fmt.Fprintf(proxy, "CONNECT %s HTTP/1.1\r\nHost: %[1]s\r\n%s\r\n", to, auth); err != nil {
		return err
	}
	var head []byte // read byte by byte: what follows belongs to the connection
	for one := make([]byte, 1); !bytes.HasSuffix(head, []byte("\r\n\r\n")); head = append(head, one[0]) {
		if _, err := io.ReadFull(answers, one); err != nil {
			return fmt.Errorf("the proxy refuses %s: %w", to, err)
		}
		if len(head) == maxHead {
			return fmt.Errorf("the proxy does not answer %s in HTTP", to)
		}
	}
	first, _, _ := strings.Cut(string(head), "\r\n")
	if words := strings.Split(first, " "); len(words) < 2 || words[1] != "200" {
		return fmt.Errorf("the proxy refuses %s: %s", to, first)
	}
	return nil
}

// forServer returns the head for the server itself. The connection serves one request, so that the next one is checked.
func (r request) forServer() string {
	host := r.host
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if r.port != 80 {
		host += ":" + strconv.Itoa(r.port)
	}
	head := []string{r.method + " " + r.path + " " + r.version, "Host: " + host, "Connection: close"}
	return strings.Join(append(head, r.header...), "\r\n") + "\r\n\r\n"
}

var errNoRequest = errors.New("this is the HTTP proxy of a sandbox: send CONNECT or an absolute http address")

func readRequest(in *bufio.Reader) (r request, err error) {
	size := 0
	line := func() (string, error) {
		text, err := in.ReadSlice('\n')
		if size += len(text); err == nil && size > maxHead {
			err = bufio.ErrBufferFull
		}
		return strings.TrimRight(string(text), "\r\n"), err
	}
	first, err := line()
	if err != nil {
		return r, err
	}
	words := strings.Split(first, " ")
	if len(words) != 3 || !strings.HasPrefix(words[2], "HTTP/1.") {
		return r, errNoRequest
	}
	if r.method, r.version = words[0], words[2]; strings.Trim(r.method, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != "" {
		return r, errNoRequest
	}
	target, usual := words[1], 0
	if r.method != connectMethod {
		rest, ok := strings.CutPrefix(target, "http://")
		if !ok {
			return r, errNoRequest
		}
		i := strings.IndexAny(rest, "/?")
		if i < 0 {
			i = len(rest)
		}
		target, r.path, usual = rest[:i], "/"+strings.TrimPrefix(rest[i:], "/"), 80
	}
	if r.host, r.port = split(target); r.port == 0 {
		r.port = usual
	}
	if r.host == "" || r.port == 0 || strings.ContainsAny(r.host, "@/\\") {
		return r, errNoRequest
	}
	for {
		text, err := line()
		if err != nil || text == "" {
			return r, err
		}
		name, _, ok := strings.Cut(strings.ToLower(text), ":")
		if !ok || name == "" || strings.ContainsAny(name, " \t") || strings.Contains(text, "\r") { // another server could read it otherwise
			return r, errNoRequest
		}
		if name != "host" && name != "connection" && name != "keep-alive" && !strings.HasPrefix(name, "proxy-") {
			r.header = append(r.header, text)
		}
	}
}

func refuse(c net.Conn, status, why string) error {
	const head = "HTTP/1.1 %s\r\nConnection: close\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n%s\n"
	_, err := fmt.Fprintf(c, head, status, len(why)+1, why)
	return errors.Join(err, c.Close())
}

// connect copies between a client and a server until both have ended. from is what is read of the client.
func connect(c net.Conn, from io.Reader, to string, begin func(net.Conn) error) error {
	server, err := net.DialTimeout("tcp", to, connectWithin)
	if err != nil {
		if begin == nil {
			return errors.Join(err, c.Close())
		}
		return refuse(c, "502 Bad Gateway", err.Error())
	}
	if begin != nil {
		err := server.SetDeadline(time.Now().Add(connectWithin))
		if err == nil {
			err = errors.Join(begin(server), server.SetDeadline(time.Time{}))
		}
		if err != nil {
			return errors.Join(refuse(c, "502 Bad Gateway", err.Error()), server.Close())
		}
	}
	sent := make(chan error, 1)
	go func() {
		_, err := io.Copy(server, from)
		sent <- errors.Join(err, server.(*net.TCPConn).CloseWrite())
	}()
	_, err = io.Copy(c, server)
	err = errors.Join(err, c.(*net.TCPConn).CloseWrite())
	return errors.Join(err, <-sent, server.Close(), c.Close())
}
