package config

import (
	"fmt"
	"net"
	"strconv"
)

// Metrics configures the metrics and health endpoints of a worker.
type Metrics struct {
	Listen string `mapstructure:"listen"` // HOST:PORT, such as 127.0.0.1:9464; empty: none
}

func (m Metrics) check() error {
	if m.Listen == "" {
		return nil
	}
	host, port, err := net.SplitHostPort(m.Listen)
	n, perr := strconv.ParseUint(port, 10, 16)
	if err == nil && perr == nil && n > 0 && host == "" {
		return fmt.Errorf("settings: metrics.listen is %q; name the interface: 127.0.0.1:%d for this machine only, "+
			"0.0.0.0:%d for every network", m.Listen, n, n)
	}
	if err != nil || perr != nil || n == 0 {
		return fmt.Errorf("settings: metrics.listen is %q; write HOST:PORT, such as 127.0.0.1:9464", m.Listen)
	}
	return nil
}
