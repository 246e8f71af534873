package supervisor

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
)

// ConnectVerb makes the supervisor's program connect its standard input and output to a host, for programs that know
// no proxies, such as ssh. Its arguments are the port of the sandbox's proxy, the host and its port.
const ConnectVerb = "connect"

func connectVerb(args []string) int {
	if err := relay(args[0], net.JoinHostPort(args[1], args[2])); err != nil {
		fmt.Fprintf(os.Stderr, "connect to %s:%s: %v\n", args[1], args[2], err)
		return 1
	}
	return 0
}

func relay(proxy, to string) error {
	c, err := net.DialTimeout("tcp", net.JoinHostPort("127.0.0.1", proxy), connectWithin)
	if err != nil {
		return err
	}
	if err := tunnel(c, c, to, ""); err != nil {
		return errors.Join(err, c.Close())
	}
	go func() {
		_, err := io.Copy(c, os.Stdin)
		if errors.Join(err, c.(*net.TCPConn).CloseWrite()) != nil {
			return // the other direction reports it
		}
	}()
	_, err = io.Copy(os.Stdout, c)
	return errors.Join(err, c.Close())
}
