package host

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"

	"github.com/passbook-run/passbook/config"
	"github.com/passbook-run/passbook/internal/certs"
	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/internal/lazyregexp"
	"github.com/passbook-run/passbook/internal/process"
	"github.com/passbook-run/passbook/workflows"
)

// ServerOptions configure how the embedded server is found or started. Only StateDir is required.
type ServerOptions struct {
	StateDir string
	CacheDir string // folder of built servers; default: passbook in the user's cache
	// a checkout of Passbook; default: found above the executable or the working directory
	SourceDir  string
	Binary     string // a program that was built from devserver; empty: it is found or built
	Codec      string // URL of a codec endpoint for the Web UI
	CodecToken string // env:NAME or file:PATH of its token
	// preferred at the first start; default 7233 and 8233; if they are taken, any free ports
	Port, UIPort int
	StartTimeout time.Duration // default: a minute; building is not counted
	// start only a server that has ended without having been stopped, with the same program if it exists
	Again bool
}

// EmbeddedServer returns how the embedded server is started with these settings.
func EmbeddedServer(s config.Settings) ServerOptions {
	o := ServerOptions{StateDir: s.StateDir, Binary: s.Server, Codec: s.Codec.Endpoint, CodecToken: s.Codec.Token}
	if o.Codec != "" && o.CodecToken == "" {
		o.CodecToken = "file:" + CodecTokenFile(s.StateDir)
	}
	return o
}

// Server is a recorded server. Its clients need certificates.
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
	Certs     certs.Dir        `json:"certs"` // folder of the certificates
	Login     string           `json:"login"` // folder of the Web UI's login
}

// TLS returns how a client with a role connects to the server.
func (s Server) TLS(r certs.Role) (*tls.Config, error) { return s.Certs.Client(r) }

// Env returns the variables with which Temporal's own programs find the server and are let in: the temporal CLI and the
// SDKs read TEMPORAL_*, tctl reads TEMPORAL_CLI_*.
func (s Server) Env() (out []string) {
	for _, row := range [][3]string{{"ADDRESS", "ADDRESS", s.Address}, {"NAMESPACE", "NAMESPACE", s.Namespace},
		{"TLS_CLIENT_CERT_PATH", "TLS_CERT", s.Certs.Cert(certs.CLI)},
		{"TLS_CLIENT_KEY_PATH", "TLS_KEY", s.Certs.Key(certs.CLI)}, {"TLS_SERVER_CA_CERT_PATH", "TLS_CA", s.Certs.CA()}} {
		out = append(out, "TEMPORAL_"+row[0]+"="+row[2], "TEMPORAL_CLI_"+row[1]+"="+row[2])
	}
	return out
}

// EnsureServer returns the healthy server: the recorded one if it runs, or a new one from the configured program, the
// cache or the source. On return it is recorded. If ctx ends while it starts, it keeps starting, and the next call finds
// it.
func EnsureServer(ctx context.Context, o ServerOptions, progress func(string)) (s Server, err error) {
	if err := o.settle(); err != nil {
		return Server{}, err
	}
	if err := (disk.Disk{}).Mkdir(o.StateDir, 0o700); err != nil {
		return Server{}, err
	}
	err = change(ctx, o.StateDir, "starting the Temporal server", progress, func(r *records) error {
		s, err = o.ensure(ctx, r, progress)
		return err
	})
	return s, err
}

func (o *ServerOptions) settle() error {
	if o.StateDir == "" {
		return errors.New("find the Temporal server: no state directory is set")
	}
	var err error
	if o.StateDir, err = filepath.Abs(o.StateDir); err != nil {
		return fmt.Errorf("find the Temporal server: %w", err)
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

func (o *ServerOptions) ensure(ctx context.Context, r *records, progress func(string)) (last Server, err error) {
	if r.Server != nil {
		last = *r.Server
	}
	if last.Process.Alive() {
		if err := last.Certs.Ensure(ctx, time.Now()); err != nil {
			return last, err
		}
		err := o.await(ctx, last, nil)
		if err == nil {
			return last, nil
		}
		if !errors.Is(err, errEnded) { // its starter may have died while it was starting
			return last, fmt.Errorf("the Temporal server runs (pid %d) but does not answer on %s: %w; see %s, or stop it "+
				"and start again", last.Process.PID, last.Address, err, last.Log)
		}
	}
	if o.Again {
		if last.Process.PID == 0 {
			return last, nil
		}
		if _, err := os.Stat(last.Binary); err == nil {
			o.Binary = last.Binary
		}
	}
	path := o.Binary
	if path == "" {
		if path, err = o.built(ctx, progress); err != nil {
			return last, err
		}
	}
	version, err := ServerVersion(ctx, path)
	if err != nil {
		return last, err
	}
	var errs []error
	for range 3 { // another process may take a port between choosing and binding it
		s, taken, err := o.start(ctx, r, path, version, last)
		if err == nil || !taken {
			return s, err
		}
		errs = append(errs, err)
	}
	return last, errors.Join(errs...)
}

var serverVersion = lazyregexp.New(`Server ((\d+\.\d+)\.\d+)`)

// ServerVersion returns the version of the Temporal server in a program that was built from devserver, such as 1.32.1.
func ServerVersion(ctx context.Context, path string) (string, error) {
	out, err := exec.CommandContext(ctx, path, "--version").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("the configured Temporal server %s: %w: %s", path, err, lastLine(out))
	}
	m := serverVersion.FindSubmatch(out)
	if m == nil || !strings.HasPrefix(string(out), "passbook ") {
		return "", fmt.Errorf("%s is not a server of Passbook: --version prints %q; to use another Temporal server, "+
			"start it and set TEMPORAL_ADDRESS", path, lastLine(out))
	}
	return string(m[1]), nil
}

// start runs a server at the ports of the last one, if they are free.
func (o *ServerOptions) start(ctx context.Context, r *records, path, version string, last Server) (
	s Server, taken bool, err error) {
	awaitRelease(ctx, ports{portOf(last.Address), portOf(last.UI)})
	ports, err := choosePorts([]int{portOf(last.Address), o.Port}, []int{portOf(last.UI), o.UIPort})
	if err != nil {
		return s, false, err
	}
	dir := filepath.Join(o.StateDir, serverDir)
	s = Server{
		Address:   loopback(ports.server),
		UI:        "http://" + loopback(ports.ui),
		Namespace: client.DefaultNamespace,
		// no other minor version may open it
		Database: filepath.Join(dir, "temporal-"+version[:strings.LastIndexByte(version, '.')]+".db"),
		Binary:   path, Version: version,
		Log: filepath.Join(dir, serverLog), Certs: certs.Dir(filepath.Join(dir, certsDir)), Login: filepath.Join(dir, loginDir),
		Started: time.Now().UTC().Truncate(time.Millisecond),
	}
	if err := s.Certs.Ensure(ctx, time.Now()); err != nil {
		return s, false, fmt.Errorf("start the Temporal server: %w", err)
	}
	d, err := launch(program{exec: path, args: o.args(s, ports), log: s.Log, dir: o.StateDir})
	if err != nil {
		return s, false, fmt.Errorf("start the Temporal server: %w", err)
	}
	s.Process, r.Server = d.id, &s
	if err := r.save(); err != nil {
		return s, false, errors.Join(fmt.Errorf("record the Temporal server: %w", err), d.id.KillGroup())
	}
	if err := o.await(ctx, s, d); err != nil {
		err = d.explain(ctx, err)
		// the other process may have released the port by now
		taken := !ports.free() || strings.Contains(err.Error(), syscall.EADDRINUSE.Error())
		return s, !d.id.Alive() && taken, fmt.Errorf("start the Temporal server %s: %w", path, err)
	}
	return s, false, nil
}

// args returns the arguments of the server. At each start it brings the namespace to its retention and search attributes.
func (o *ServerOptions) args(s Server, p ports) []string {
	args := []string{"server", "start-dev", "--ip", "127.0.0.1", "--port", fmt.Sprint(p.server), "--ui-port",
		fmt.Sprint(p.ui), "--namespace", s.Namespace, "--db-filename", s.Database, "--log-level", "warn",
		"--tls-dir", string(s.Certs), "--ui-login-dir", s.Login}
	attributes := workflows.SearchAttributes()
	for _, name := range slices.Sorted(maps.Keys(attributes)) {
		args = append(args, "--search-attribute", name+"="+attributes[name].String())
	}
	if o.Codec != "" {
		args = append(args, "--ui-codec-endpoint", o.Codec)
	}
	if o.CodecToken != "" {
		args = append(args, "--ui-codec-token", o.CodecToken)
	}
	return args
}

// await returns when the server and its Web UI answer. Nothing else at that port has its certificate.
func (o *ServerOptions) await(ctx context.Context, s Server, d *daemon) error {
	return d.await(ctx, o.StartTimeout, func(ctx context.Context) error {
		if !s.Process.Alive() {
			return errEnded
		}
		trust, err := s.TLS(certs.CLI)
		if err != nil {
			return err
		}
		c, err := client.DialContext(ctx, client.Options{HostPort: s.Address, Namespace: s.Namespace,
			ConnectionOptions: client.ConnectionOptions{TLS: trust}, Logger: log.NewStructuredLogger(discard)})
		if err != nil {
			return err
		}
		defer c.Close()
		if _, err := c.CheckHealth(ctx, &client.CheckHealthRequest{}); err != nil {
			return err
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.UI+"/healthz", nil)
		if err != nil {
			return err
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return fmt.Errorf("the Web UI: %w", err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return fmt.Errorf("the Web UI on %s answered %s", s.UI, resp.Status)
		}
		return nil
	})
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
		s, err := LastServer(stateDir)
		if err == nil && s.Certs != "" {
			err = s.Certs.Ensure(ctx, time.Now())
		}
		if err != nil && ctx.Err() == nil {
			report(err)
		}
	}
}

// LastServer returns the server that runs or ran last; zero: none did.
func LastServer(stateDir string) (Server, error) {
	st, err := recorded(stateDir)
	if err != nil || st.Server == nil {
		return Server{}, err
	}
	return *st.Server, nil
}
