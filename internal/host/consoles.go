package host

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/passbook-run/passbook/config"
	"github.com/passbook-run/passbook/internal/disk"
)

// consolesFolder has a lock for each running console. Its owner's record has the URL.
func consolesFolder(stateDir string) string { return filepath.Join(stateDir, "console", "running") }

// MarkConsole records a running console until the lock is removed or the process ends.
func MarkConsole(ctx context.Context, stateDir, base string, now time.Time) (*disk.Lock, error) {
	folder := consolesFolder(stateDir)
	if err := (disk.Disk{}).Mkdir(folder, 0o700); err != nil {
		return nil, fmt.Errorf("record the console: %w", err)
	}
	name := fmt.Sprintf("%d-%s", os.Getpid(), strconv.FormatInt(now.UnixNano(), 36))
	l, err := (disk.Disk{}).WaitLock(ctx, filepath.Join(folder, name), disk.Self(base, now))
	if err != nil {
		return nil, fmt.Errorf("record the console: %w", err)
	}
	return l, nil
}

// Consoles returns the URLs of the running consoles, in the order of their starts. It removes the records of consoles
// that were killed.
func Consoles(stateDir string) (urls []string, err error) {
	folder := consolesFolder(stateDir)
	entries, err := os.ReadDir(folder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("find the running console: %w", err)
	}
	var owners []disk.Owner
	for _, e := range entries {
		l, err := (disk.Disk{}).TryLock(filepath.Join(folder, e.Name()), disk.Owner{})
		var held *disk.ErrHeld
		switch {
		case errors.As(err, &held):
			if held.Owner.What != "" {
				owners = append(owners, held.Owner)
			}
			continue
		case err == nil:
			err = l.Remove()
		}
		if err != nil {
			return nil, fmt.Errorf("find the running console: %w", err)
		}
	}
	slices.SortStableFunc(owners, func(a, b disk.Owner) int { return a.Since.Compare(b.Since) })
	for _, o := range owners {
		urls = append(urls, o.What)
	}
	return urls, nil
}

// OwnServers returns the addresses of Passbook: of the server, which may be that of a cluster, and, on this host, of the
// Web UI, consoles, metrics and codec.
func OwnServers(s config.Settings, server string) (all []string, err error) {
	addresses := []string{config.ConsoleAddress, server, s.Metrics.Listen, s.Codec.Endpoint}
	st, err := Read(s.StateDir)
	if err != nil {
		return nil, err
	}
	if st.Server != nil {
		addresses = append(addresses, st.Server.Address, st.Server.UI)
	}
	urls, err := Consoles(s.StateDir)
	if err != nil {
		return nil, err
	}
	for _, u := range urls { // under a name, or at the address of a proxy
		if parsed, err := url.Parse(u); err == nil {
			addresses = append(addresses, "127.0.0.1:"+parsed.Port())
		}
	}
	for _, a := range addresses {
		if _, rest, ok := strings.Cut(a, "://"); ok {
			a = rest
		}
		if _, _, err := net.SplitHostPort(a); err == nil {
			all = append(all, a)
		}
	}
	return all, nil
}
