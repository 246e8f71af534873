package host

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/passbook-run/passbook/internal/certs"
	"github.com/passbook-run/passbook/internal/process"
)

// Options configure how a server is found or started. Only StateDir is required.
type ServerOptions struct {
	StateDir string
	CacheDir string // folder of built servers; default: passbook in the user's cache
	// a checkout of Passbook; default: found above the executable or the working directory
	SourceDir        string
	Binary           string            // a server program, such as the temporal CLI; empty: it is built
	Namespace        string            // default: default
	SearchAttributes map[string]string // name → type, as in Stage → Keyword
	Codec            string            // URL of a codec endpoint for the Web UI
	CodecToken       string            // env:NAME or file:PATH of its token
	// preferred at the first start; default 7233 and 8233; if they are taken, any free ports
	Port, UIPort int
	StartTimeout time.Duration // default: a minute; building is not counted
	// start only a server that has ended without having been stopped, with the same program if it exists
	Again bool
}

// Server is a recorded server.
type Server struct {
	Process   process.Identity `json:"process"`
	Address   string           `json:"address"`
	UI        string           `json:"ui"`
	Namespace string           `json:"namespace"`
	Database  string           `json:"database"`
	Binary    string           `json:"binary"`
	Version   string           `json:"version"`
	Log       string           `json:"log"`
	Started   time.Time        `json:"started"`
	// folder of the certificates that clients need; empty: the server has no TLS, and every user of the machine may use it
	Certs certs.Dir `json:"certs,omitempty"`
	// folder of the Web UI's login; empty: it has none
	Login string `json:"login,omitempty"`
}

// TLS returns how a client with a role connects to the server; nil: without TLS.
func (s Server) TLS(r certs.Role) (*tls.Config, error) {
	if s.Certs == "" {
		return nil, nil
	}
	return s.Certs.Client(r)
}

// Insecure explains why other users of the machine may use the server; empty: they may not.
func (s Server) Insecure() string {
	if s.Certs != "" {
		return ""
	}
	return "insecure: it has no TLS, so every user of this machine can read runs and start commands as you"
}

// Ensure returns a healthy server with the namespace and the search attributes: the recorded one if it runs, or a new
// one from the configured program, the cache or the source. On return it is recorded. If ctx ends while it starts, it
// keeps starting, and the next call finds it.
func EnsureServer(ctx context.Context, o ServerOptions, progress func(string)) (Server, error) {
	progress = orSilent(progress)
	if err := o.settle(); err != nil {
		return Server{}, err
	}
	lock, err := hold(ctx, filepath.Join(o.StateDir, serverDir), "starting the Temporal server", progress)
	if err != nil {
		return Server{}, fmt.Errorf("find the Temporal server: %w", err)
	}
	s, err := o.ensure(ctx, progress)
	return s, errors.Join(err, lock.Unlock())
}

func (o *ServerOptions) settle() error {
	if o.StateDir == "" {
		return errors.New("find the Temporal server: no state directory is set")
	}
	var err error
	if o.StateDir, err = filepath.Abs(o.StateDir); err != nil {
		return fmt.Errorf("find the Temporal server: %w", err)
	}
	if o.Namespace == "" {
		o.Namespace = "default"
	}
	if o.Port == 0 {
		o.Port = 7233
	}
	if o.UIPort == 0 {
		o.UIPort = 8233
	}
	if o.StartTimeout == 0 {
		o.StartTimeout = defaultStartTimeout
	}
	return nil
}

func (o *ServerOptions) ensure(ctx context.Context, progress func(string)) (Server, error) {
	s, err := readServer(o.StateDir)
	if err != nil {
		return s, err
	}
	if s.Process.Alive() {
		if err := RenewCerts(ctx, s); err != nil {
			return s, err
		}
		if err := o.join(ctx, s); !errors.Is(err, errEnded) {
			s.Namespace = o.Namespace // it may have more than one
			return s, err
		}
	}
	if o.Again {
		if s.Process.PID == 0 {
			return s, nil
		}
		if _, err := os.Stat(s.Binary); err == nil {
			o.Binary = s.Binary
		}
	}
	b, err := o.binary(ctx, progress)
	if err != nil {
		return s, err
	}
	return o.start(ctx, b, s)
}

// join waits for a running server, whose starter may have died while it was starting.
func (o *ServerOptions) join(ctx context.Context, s Server) error {
	err := o.awaitServer(ctx, s, nil)
	if err == nil {
		return nil
	}
	return fmt.Errorf("the Temporal server runs (pid %d) but does not answer on %s: %w; see %s, or stop it and "+
		"start again", s.Process.PID, s.Address, err, s.Log)
}

// start runs a server. It tries three times, because another process may take a port between choosing and binding it.
func (o *ServerOptions) start(ctx context.Context, b binary, last Server) (Server, error) {
	var errs []error
	for range 3 {
		s, taken, err := o.attempt(ctx, b, last)
		if err == nil || !taken {
			return s, err
		}
		errs = append(errs, err)
	}
	return Server{}, errors.Join(errs...)
}

func (o *ServerOptions) attempt(ctx context.Context, b binary, last Server) (s Server, taken bool, err error) {
	awaitRelease(ctx, ports{portOf(last.Address), portOf(last.UI)})
	ports, err := choosePorts([]int{portOf(last.Address), o.Port}, []int{portOf(last.UI), o.UIPort})
	if err != nil {
		return s, false, err
	}
	dir := filepath.Join(o.StateDir, serverDir)
	s = Server{
		Address:   loopback(ports.server),
		UI:        "http://" + loopback(ports.ui),
		Namespace: o.Namespace,
		Database:  filepath.Join(dir, b.database()),
		Binary:    b.path,
		Version:   b.version,
		Log:       filepath.Join(dir, serverLog),
		Started:   time.Now().UTC().Truncate(time.Millisecond),
	}
	if !b.foreign {
		s.Certs, s.Login = certs.Dir(filepath.Join(dir, certsDir)), filepath.Join(dir, loginDir)
		if err := s.Certs.Ensure(ctx, time.Now()); err != nil {
			return s, false, fmt.Errorf("start the Temporal server: %w", err)
		}
	}
	d, err := launch(launchSpec{exec: b.path, args: o.args(b, s, ports), log: s.Log, dir: o.StateDir, mute: b.foreign})
	if err != nil {
		return s, false, fmt.Errorf("start the Temporal server: %w", err)
	}
	s.Process = d.id
	if err := save(filepath.Join(dir, recordFile), s); err != nil {
		return s, false, errors.Join(fmt.Errorf("record the Temporal server: %w", err), d.id.KillGroup())
	}
	if err := o.awaitServer(ctx, s, d); err != nil {
		err = d.explain(ctx, err)
		// the other process may have released the port by now
		taken := !ports.free() || strings.Contains(err.Error(), syscall.EADDRINUSE.Error())
		return s, !d.id.Alive() && taken, fmt.Errorf("start the Temporal server %s: %w", b.path, err)
	}
	return s, false, nil
}

// args returns the arguments of start-dev, which the embedded server and the temporal CLI accept.
func (o *ServerOptions) args(b binary, s Server, p ports) []string {
	args := []string{"server", "start-dev", "--ip", "127.0.0.1", "--port", fmt.Sprint(p.server), "--ui-port",
		fmt.Sprint(p.ui),
		"--namespace", o.Namespace, "--db-filename", s.Database, "--log-level", "warn"}
	for _, name := range slices.Sorted(maps.Keys(o.SearchAttributes)) {
		args = append(args, "--search-attribute", name+"="+o.SearchAttributes[name])
	}
	if o.Codec != "" {
		args = append(args, "--ui-codec-endpoint", o.Codec)
	}
	if b.foreign {
		return append(args, foreignArgs...)
	}
	if o.CodecToken != "" {
		args = append(args, "--ui-codec-token", o.CodecToken)
	}
	return append(args, "--tls-dir", string(s.Certs), "--ui-login-dir", s.Login)
}

// foreignArgs returns the settings that the embedded server has by default and the temporal CLI lacks.
var foreignArgs = []string{
	"--sqlite-pragma", "journal_mode=wal", "--sqlite-pragma", "synchronous=2",
	"--dynamic-config-value", "history.transferProcessorMaxPollRPS=1000",
	"--dynamic-config-value", "history.timerProcessorMaxPollRPS=1000",
	"--dynamic-config-value", `history.timerProcessorMaxTimeShift="10ms"`,
	"--dynamic-config-value", "matching.numTaskqueueReadPartitions=1",
	"--dynamic-config-value", "matching.numTaskqueueWritePartitions=1",
	"--dynamic-config-value", "limit.blobSize.error=131072",
	"--dynamic-config-value", "limit.blobSize.warn=65536",
	"--dynamic-config-value", "history.hostLevelCacheMaxSize=1000",
	"--dynamic-config-value", "frontend.enableServerVersionCheck=false",
}

// StopServer stops the recorded server with SIGTERM, and after the grace with SIGKILL. stopped reports whether one
// was running. Its record stays, for its ports.
func StopServer(ctx context.Context, stateDir string, grace time.Duration) (stopped bool, err error) {
	dir := filepath.Join(stateDir, serverDir)
	lock, err := hold(ctx, dir, "stopping the Temporal server", orSilent(nil))
	if err != nil {
		return false, fmt.Errorf("stop the Temporal server: %w", err)
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()
	s, err := readServer(stateDir)
	if err != nil || s.Process.PID == 0 {
		return false, err
	}
	if stopped = s.Process.Alive(); stopped {
		if err := end(ctx, s.Process, grace); err != nil {
			return false, fmt.Errorf("stop the Temporal server: %w", err)
		}
	}
	s.Process = process.Identity{} // a keeper does not restart a server that was stopped
	return stopped, save(filepath.Join(dir, recordFile), s)
}

// RenewCerts renews the certificates of a server and its clients that expire soon.
func RenewCerts(ctx context.Context, s Server) error {
	if s.Certs == "" {
		return nil
	}
	return s.Certs.Ensure(ctx, time.Now())
}

// KeepCerts renews the certificates of the recorded server until ctx ends. A process that runs for long calls it.
func KeepCerts(ctx context.Context, stateDir string, report func(error)) {
	tick := time.NewTicker(certsEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		s, err := readServer(stateDir)
		if err == nil {
			err = RenewCerts(ctx, s)
		}
		if err != nil && ctx.Err() == nil {
			report(err)
		}
	}
}

// Last returns the server that runs or ran last; zero: none did.
func LastServer(stateDir string) (Server, error) { return readServer(stateDir) }

func readServer(stateDir string) (Server, error) {
	var s Server
	return s, load(filepath.Join(stateDir, serverDir, recordFile), &s)
}
