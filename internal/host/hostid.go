package host

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/internal/lazyregexp"
)

var hostID = lazyregexp.New(`^[0-9a-f]{16}$`)

// HostID returns the name of this machine in queue names: 16 random hex digits, created by the first call. Concurrent
// callers get the same one.
func HostID(stateDir string) (string, error) {
	// an existing one is only read: the disk may be full
	if id, err := readHostID(stateDir); !errors.Is(err, fs.ErrNotExist) {
		return id, err
	}
	if err := OpenState(context.Background(), stateDir); err != nil {
		return "", fmt.Errorf("make a host id: %w", err)
	}
	fresh := make([]byte, 8)
	if _, err := rand.Read(fresh); err != nil {
		return "", fmt.Errorf("make a host id: %w", err)
	}
	if _, err := (disk.Disk{}).CreateExclusive(filepath.Join(stateDir, hostFile), []byte(hex.EncodeToString(fresh)+"\n"), 0o600); err != nil {
		return "", fmt.Errorf("make a host id: %w", err)
	}
	return readHostID(stateDir)
}

func readHostID(stateDir string) (string, error) {
	path := filepath.Join(stateDir, hostFile)
	data, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("read the host id: %w", err)
	}
	id := strings.TrimSpace(string(data))
	if !hostID.MatchString(id) {
		return "", fmt.Errorf("read the host id: %s holds %q, want 16 hex digits; runs that are bound to this host "+
			"need the old one", path, id)
	}
	return id, nil
}
