package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
)

// retention is how long a closed run stays readable; a namespace created without it is emptied after a day.
const retention = 90 * 24 * time.Hour

// options is the command line, checked.
type options struct {
	version     bool
	ip          string
	port        int
	headless    bool
	uiIP        string
	uiPort      int
	uiCodec     string
	namespaces  []string
	db          string // empty: in memory
	attributes  map[string]enumspb.IndexedValueType
	dynamic     map[string]any
	pragmas     map[string]string
	connections int // to the database file
	shards      int // of a new database
	retention   time.Duration
	logLevel    string
	logFormat   string
	allowRemote bool
	certs       certFolder // empty: insecure
	insecure    bool
	login       string // folder of the Web UI's login; empty: none
	// env:NAME or file:PATH of the codec endpoint's token
	uiCodecToken string
}

func parse(args []string, usage io.Writer) (options, error) {
	var o options
	var namespaces, attributes, dynamic, pragmas list
	fs := flag.NewFlagSet("devserver [server start-dev]", flag.ContinueOnError)
	fs.SetOutput(usage)
	fs.BoolVar(&o.version, "version", false, "print the versions and exit")
	fs.StringVar(&o.ip, "ip", "127.0.0.1", "address of the frontend")
	fs.IntVar(&o.port, "port", 7233, "port of the frontend; 0: any free one")
	fs.BoolVar(&o.headless, "headless", false, "no Web UI")
	fs.StringVar(&o.uiIP, "ui-ip", "", "address of the Web UI (default: --ip)")
	fs.IntVar(&o.uiPort, "ui-port", 0, "port of the Web UI (default: --port plus 1000)")
	fs.StringVar(&o.uiCodec, "ui-codec-endpoint", "", "URL of a codec endpoint that the Web UI has payloads decoded by")
	fs.Var(&namespaces, "namespace", "a namespace besides default; may be repeated")
	fs.StringVar(&o.db, "db-filename", "", "database file (default: in memory)")
	fs.Var(&attributes, "search-attribute", "Name=Type; may be repeated")
	fs.Var(&dynamic, "dynamic-config-value", "key=JSON; may be repeated")
	fs.Var(&pragmas, "sqlite-pragma", "pragma=value; may be repeated")
	fs.IntVar(&o.connections, "sqlite-connections", 1, "connections to the database file")
	fs.IntVar(&o.shards, "history-shards", 1, "shards of a new database; an existing one keeps its number")
	fs.DurationVar(&o.retention, "retention", retention, "how long closed runs are kept")
	fs.StringVar(&o.logLevel, "log-level", "warn", "debug, info, warn, error or never")
	fs.StringVar(&o.logFormat, "log-format", "text", "text (or pretty), or json")
	fs.BoolVar(&o.allowRemote, "allow-remote", false, "allow an --ip that other machines can reach; there is no login")
	fs.Func("tls-dir", "folder with the certificates of the server (required, or --insecure)", func(s string) error {
		o.certs = certFolder(s)
		return nil
	})
	fs.StringVar(&o.login, "ui-login-dir", "", "folder of the Web UI's login (required with --tls-dir, or --headless)")
	fs.StringVar(&o.uiCodecToken, "ui-codec-token", "", "env:NAME or file:PATH of the codec endpoint's token")
	fs.BoolVar(&o.insecure, "insecure", false, "no TLS: every user of this machine may do everything, for tests")
	if err := fs.Parse(withoutVerb(args)); err != nil {
		return o, err
	}
	if fs.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q: see --help", fs.Arg(0))
	}
	var errs [3]error
	o.namespaces = unique(append(namespaces, "default"))
	o.attributes, errs[0] = attributes.types()
	o.dynamic, errs[1] = dynamic.values()
	o.pragmas, errs[2] = pragmas.pairs()
	return o, errors.Join(errs[0], errs[1], errs[2], o.settle())
}

// withoutVerb drops a leading `server start-dev`, which callers of the temporal CLI write.
func withoutVerb(args []string) []string {
	if len(args) >= 2 && args[0] == "server" && args[1] == "start-dev" {
		return args[2:]
	}
	return args
}

// settle checks what concerns several flags and fills in what one leaves to another.
func (o *options) settle() error {
	if o.uiIP == "" {
		o.uiIP = o.ip
	}
	errs := []error{o.checkSecurity()}
	for _, f := range []struct {
		name string
		ip   *string
	}{{"--ip", &o.ip}, {"--ui-ip", &o.uiIP}} {
		if *f.ip == "localhost" {
			*f.ip = "127.0.0.1"
		}
		errs = append(errs, o.reachable(f.name, *f.ip))
	}
	errs = append(errs, positive("--sqlite-connections", o.connections), positive("--history-shards", o.shards))
	if o.retention < time.Hour {
		errs = append(errs, fmt.Errorf("--retention %s: the server refuses less than 1h", o.retention))
	}
	return errors.Join(append(errs, o.checkLog())...)
}

func positive(flag string, n int) error {
	if n < 1 {
		return fmt.Errorf("%s %d: it must be at least 1", flag, n)
	}
	return nil
}

func (o *options) reachable(name, ip string) error {
	parsed := net.ParseIP(ip)
	switch {
	case parsed == nil:
		return fmt.Errorf("%s %q: not an IP address", name, ip)
	case !parsed.IsLoopback() && !o.allowRemote:
		return fmt.Errorf("%s %s: other machines could reach this server, which has no login; use 127.0.0.1, or say "+
			"--allow-remote", name, ip)
	}
	return nil
}

// checkSecurity wants one of TLS and the request for none: a forgotten flag must not open the server.
func (o *options) checkSecurity() error {
	switch {
	case o.version || o.insecure && o.certs == "":
		return nil
	case o.insecure:
		return errors.New("--insecure and --tls-dir exclude each other")
	case o.certs == "":
		return errors.New("--tls-dir is missing: without certificates every user of this machine could run commands as " +
			"you; name the folder, or say --insecure")
	case o.login == "" && !o.headless:
		return errors.New("--ui-login-dir is missing: the Web UI needs a login; name a folder, or say --headless")
	}
	return nil
}
