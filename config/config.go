// Package config loads the settings of a host from a file, PASSBOOK_* variables and flags; later sources win. The
// connection to Temporal is configured separately, as for the temporal CLI: TEMPORAL_ADDRESS, TEMPORAL_PROFILE,
// temporal.toml.
package config

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/go-viper/mapstructure/v2"
	"github.com/spf13/pflag"
	"github.com/spf13/viper"

	"github.com/passbook-run/passbook/internal/lazyregexp"
	"github.com/passbook-run/passbook/run"
)

// Settings are the settings of one host. The tag of a field is its name in the file; its variable is PASSBOOK_ and
// that name in upper case.
type Settings struct {
	// records of background processes, database, scratch, default store
	StateDir  string        `mapstructure:"state_dir"`
	RunRoot   string        `mapstructure:"run_root"`   // folder of runs without --output-dir; empty: runs in StateDir
	Store     string        `mapstructure:"store"`      // bucket URL; empty: file:// in the state directory
	TaskQueue string        `mapstructure:"task_queue"` // base name of the queues
	Calls     int           `mapstructure:"calls"`      // maximum number of agent processes of one worker
	Browser   string        `mapstructure:"browser"`    // path of Chromium; empty: searched on the host
	Heartbeat time.Duration `mapstructure:"heartbeat"`  // a worker without a heartbeat for this long is lost
	// how often a worker checks what its host has: agents, stores, browser
	Recheck time.Duration `mapstructure:"recheck"`
	// a background worker stops after this long without work
	Idle time.Duration `mapstructure:"idle"`
	// a keeper restarts the background worker and the embedded server
	Keeper bool `mapstructure:"keeper"`
	// the machine does not sleep while a call runs
	KeepAwake bool `mapstructure:"keep_awake"`
	// a stopping worker waits this long for its calls; 0: the next worker joins them
	Drain time.Duration `mapstructure:"drain"`
	// steps in one workflow execution; 0: as the server suggests
	ContinueAfter int    `mapstructure:"continue_after"`
	Server        string `mapstructure:"server"`      // embedded server's binary; empty: built when first needed
	Environment   string `mapstructure:"environment"` // recorded in meta.json: production, laptop

	// MODEL INPUT OUTPUT [CACHE_READ CACHE_WRITE], in USD per million tokens; they precede the list prices
	Prices Lines `mapstructure:"prices"`

	PerDay PerDay `mapstructure:"per_day"` // budget of all runs of this host
	AtOnce AtOnce `mapstructure:"at_once"` // calls of agents at the same time on this host

	Policy  Policy  `mapstructure:"policy"`  // restrictions of runs on this host
	Sandbox Sandbox `mapstructure:"sandbox"` // restrictions of agents and commands on this host
	Redact  Redact  `mapstructure:"redact"`
	Codec   Codec   `mapstructure:"codec"`
	Console Console `mapstructure:"console"`
	Metrics Metrics `mapstructure:"metrics"`

	Forge Forge `mapstructure:"forge"` // of issues and pull requests

	Deployment Deployment `mapstructure:"deployment"` // versions of workers in a cluster
}

// Forge is the only forge that gets the operator's token.
type Forge struct {
	URL string `mapstructure:"url"` // https://github.com, or the address of a GitHub Enterprise server
}

func (f Forge) check() error {
	u, err := url.Parse(f.URL)
	loopback := err == nil && slices.Contains([]string{"127.0.0.1", "localhost", "::1"}, u.Hostname())
	if err != nil || u.Host == "" || u.User != nil || u.Path != "" || u.RawQuery != "" || u.Scheme != "https" && !loopback {
		return fmt.Errorf("settings: forge.url is %q; it must be an https address without a path, such as https://github.com",
			Masked(f.URL))
	}
	return nil
}

// Console configures the links to the console in notices.
type Console struct {
	// address of the console as people reach it, such as https://passbook.example.org; empty: notices have no links
	URL string `mapstructure:"url"`
	// how long a link that answers a question is valid
	LinkExpires time.Duration `mapstructure:"link_expires"`
	// file of the key of links that the hosts of a cluster share; empty: this host's own
	LinkKeyFile string `mapstructure:"link_key_file"`
}

func (c Console) check() error {
	var errs []error
	u, err := url.Parse(c.URL)
	if c.URL != "" && (err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil ||
		u.RawQuery != "" || u.Fragment != "" || strings.Trim(u.Path, "/") != "") {
		errs = append(errs, fmt.Errorf("settings: console.url is %q; it must be an http or https address without a path, "+
			"such as https://passbook.example.org", Masked(c.URL)))
	}
	if c.LinkExpires < time.Minute {
		errs = append(errs, fmt.Errorf("settings: console.link_expires is %s; it must be at least 1m", c.LinkExpires))
	}
	return errors.Join(errs...)
}

// Redact configures redaction. Well-known forms of keys are always redacted.
type Redact struct {
	Env      Words `mapstructure:"env"`      // names of variables with secret values; * matches any characters
	Patterns Lines `mapstructure:"patterns"` // RE2; the first group is the secret, or the whole match
}

// ConsoleAddress is where the console listens by default.
const ConsoleAddress = "127.0.0.1:8400"

// Sandbox configures the sandboxes of calls. Paths are absolute or begin with ~/.
type Sandbox struct {
	// the weakest mode, and that of agents and steps that name none: none, workspace or strict; empty: workspace
	Mode string `mapstructure:"mode"`
	// what calls may reach: internet, host, none, or addresses (HOST, HOST:PORT, *.DOMAIN); empty: internet
	Network Words `mapstructure:"network"`
	Read    Words `mapstructure:"read"`  // additional paths that calls can read
	Write   Words `mapstructure:"write"` // additional paths that calls can write
}

// Codec configures the encryption of Temporal payloads. Without a key they are not encrypted.
type Codec struct {
	Key      string `mapstructure:"key"`      // id of the key for new payloads
	Keys     Words  `mapstructure:"keys"`     // id=env:NAME or id=file:PATH; retired keys still decrypt
	Endpoint string `mapstructure:"endpoint"` // URL of `starter codec serve` for browsers; the embedded Web UI uses it
	// env:NAME or file:PATH of the token that the endpoint requires; empty: none
	Token string `mapstructure:"token"`
}

// Words is a list; a variable or a flag separates its elements with commas.
type Words []string

// Lines is a list; a variable or a flag contains one element on each line.
type Lines []string

// Policy restricts runs. It is checked when a run starts, is forked, or continues in a new epoch. Stores and roots are
// checked by workers, before each use.
type Policy struct {
	Agents Words   `mapstructure:"agents"`     // programs that runs may call; empty: all
	Env    Words   `mapstructure:"env"`        // environment variables that agents may get; empty: all
	Budget float64 `mapstructure:"budget_usd"` // maximum that one run may spend, in USD; 0: no limit
	// force, and what a fork may not change: agent, model, budget, pipeline, task
	Forbid Words `mapstructure:"forbid"`
	// URLs of stores that runs may use, beside the host's and those of recorded runs
	Stores Words `mapstructure:"stores"`
	Roots  Words `mapstructure:"roots"` // folders of run directories; empty: all
}

// PerDay bounds what the calls of all runs of a host may use on one day in its time zone. 0: no limit.
type PerDay struct {
	USD    float64 `mapstructure:"usd"`
	Tokens int64   `mapstructure:"tokens"` // of all kinds
	Calls  int     `mapstructure:"calls"`  // of agents
}

func (p PerDay) check() error {
	var errs []error
	if !run.ValidBudget(p.USD) {
		errs = append(errs, fmt.Errorf("settings: per_day.usd is %g; it must be a number from 0 to %.0f", p.USD,
			run.MaxBudgetUSD))
	}
	if p.Tokens < 0 || p.Calls < 0 {
		errs = append(errs, errors.New("settings: per_day.tokens and per_day.calls must be at least 0"))
	}
	return errors.Join(errs...)
}

const envPrefix = "passbook"

// defaults also lists the settings that exist.
func defaults() map[string]any {
	return map[string]any{
		"state_dir": stateHome(), "run_root": "", "store": "", "task_queue": "passbook", "calls": 4, "browser": "",
		"heartbeat": 10 * time.Second, "recheck": 10 * time.Second, "idle": time.Minute, "keeper": true,
		"keep_awake": true, "prices": []string{},
		"drain": time.Duration(0), "continue_after": 0, "server": "", "environment": "local",
		"per_day.usd": 0.0, "per_day.tokens": int64(0), "per_day.calls": 0,
		"at_once.host": 0, "at_once.account": 0, "at_once.accounts": []string{},
		"policy.agents": "", "policy.env": "", "policy.budget_usd": 0.0, "policy.forbid": "",
		"policy.stores": []string{}, "policy.roots": []string{},
		"redact.env": []string{"*_TOKEN", "*_KEY", "*_SECRET", "*PASSWORD"}, "redact.patterns": []string{},
		"sandbox.mode": "", "sandbox.network": []string{}, "sandbox.read": []string{}, "sandbox.write": []string{},
		"codec.key": "", "codec.keys": []string{}, "codec.endpoint": "", "codec.token": "",
		"metrics.listen": "", "deployment.name": "", "deployment.build_id": "",
		"forge.url":   "https://github.com",
		"console.url": "", "console.link_expires": 7 * 24 * time.Hour, "console.link_key_file": "",
	}
}

// stateHome returns the folder of the operating system for the state of this user.
func stateHome() string {
	if dir := os.Getenv("XDG_STATE_HOME"); dir != "" {
		return filepath.Join(dir, "passbook")
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return filepath.Join(os.TempDir(), "passbook")
	}
	if runtime.GOOS == "darwin" {
		return filepath.Join(home, "Library", "Application Support", "Passbook")
	}
	return filepath.Join(home, ".local", "state", "passbook")
}

// Flags defines the flags of the settings: --state-dir for state_dir, and --settings for the file.
func Flags(fs *pflag.FlagSet) {
	fs.String("settings", "", "settings file (default: passbook/config.yaml in the user's configuration folder)")
	for _, name := range names() {
		fs.String(flagName(name), "", "setting "+name)
		err := fs.SetAnnotation(flagName(name), settingFlag, []string{name})
		if err = errors.Join(err, fs.MarkHidden(flagName(name))); err != nil {
			panic(err) // the flag is defined above
		}
	}
}

// settingFlag annotates flags of settings: a verb may have its own flag with the same name, such as budget --calls.
const settingFlag = "passbook_setting"

func names() []string {
	var out []string
	for name := range defaults() {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

var dashes = strings.NewReplacer("_", "-", ".", "-")

func flagName(setting string) string { return dashes.Replace(setting) }

// variable returns the name of a setting's variable.
func variable(setting string) string {
	return strings.ToUpper(envPrefix + "_" + strings.ReplaceAll(setting, ".", "_"))
}

// Load reads the settings from the file, the variables and the flags of fs, which may be nil. Unknown names in the
// file and values of a wrong type are errors; all are reported at once.
func Load(fs *pflag.FlagSet) (Settings, error) {
	v, err := read(fs)
	if err != nil {
		return Settings{}, err
	}
	s, err := decode(v)
	return s, errors.Join(err, checkPrices(v, fs, s))
}

// read collects the values from all sources.
func read(fs *pflag.FlagSet) (*viper.Viper, error) {
	v := viper.New()
	for name, value := range defaults() {
		v.SetDefault(name, value)
	}
	v.SetEnvPrefix(envPrefix)
	v.SetEnvKeyReplacer(strings.NewReplacer(".", "_"))
	v.AutomaticEnv()
	if err := readFile(v, fs); err != nil {
		return nil, err
	}
	for name, value := range given(fs) {
		v.Set(name, value)
	}
	return v, nil
}

// given returns the settings that flags set.
func given(fs *pflag.FlagSet) map[string]string {
	out := map[string]string{}
	if fs == nil {
		return out
	}
	for _, name := range names() {
		if f := fs.Lookup(flagName(name)); f != nil && f.Changed && f.Annotations[settingFlag] != nil {
			out[name] = f.Value.String()
		}
	}
	return out
}

func decode(v *viper.Viper) (Settings, error) {
	var s Settings
	if err := v.UnmarshalExact(&s,
		viper.DecodeHook(mapstructure.ComposeDecodeHookFunc(mapstructure.StringToTimeDurationHookFunc(),
			splitLists))); err != nil {
		return s, fmt.Errorf("settings: %w", err)
	}
	return s.complete()
}

// splitLists splits lists that come as one text.
func splitLists(_, to reflect.Type, data any) (any, error) {
	text, ok := data.(string)
	if !ok {
		return data, nil
	}
	sep := ","
	switch to {
	case reflect.TypeFor[Lines]():
		sep = "\n"
	case reflect.TypeFor[Words]():
	default:
		return data, nil
	}
	out := []string{}
	for _, part := range strings.Split(text, sep) {
		if part = strings.TrimSpace(part); part != "" {
			out = append(out, part)
		}
	}
	return out, nil
}

// File returns the path of the settings file. If it is not named, the file in the user's configuration folder may not
// exist; named reports whether it is named. An empty path means that there is no such folder.
func File(fs *pflag.FlagSet) (path string, named bool) {
	if fs != nil {
		path, _ = fs.GetString("settings")
	}
	if path == "" {
		path = os.Getenv("PASSBOOK_SETTINGS")
	}
	if path != "" {
		return path, true
	}
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", false // without a home folder there is no file
	}
	return filepath.Join(dir, "passbook", "config.yaml"), false
}

func readFile(v *viper.Viper, fs *pflag.FlagSet) error {
	path, explicit := File(fs)
	if path == "" {
		return nil
	}
	v.SetConfigFile(path)
	err := v.ReadInConfig()
	if err == nil || (!explicit && errors.Is(err, os.ErrNotExist)) {
		return nil
	}
	return fmt.Errorf("settings file %s: %w", path, err)
}

func (s Settings) complete() (Settings, error) {
	s.RunRoot = cmp.Or(s.RunRoot, filepath.Join(s.StateDir, "runs"))
	for _, p := range []*string{&s.StateDir, &s.RunRoot} {
		abs, err := filepath.Abs(*p)
		if err != nil {
			return s, err
		}
		*p = abs
	}
	for _, p := range append([]*string{&s.Console.LinkKeyFile}, pointers(s.Policy.Roots)...) {
		if *p == "" {
			continue
		}
		abs, err := filepath.Abs(*p)
		if err != nil {
			return s, err
		}
		*p = abs
	}
	if s.Store == "" {
		folder := url.URL{Scheme: "file", Path: filepath.ToSlash(filepath.Join(s.StateDir, "store"))}
		s.Store = folder.String() // the path may contain characters that need escaping
	}
	var errs []error
	if s.Calls < 1 {
		errs = append(errs, fmt.Errorf("settings: calls is %d; it must be at least 1", s.Calls))
	}
	if s.Heartbeat < time.Second {
		errs = append(errs, fmt.Errorf("settings: heartbeat is %s; it must be at least 1s", s.Heartbeat))
	}
	if s.Recheck < 100*time.Millisecond {
		errs = append(errs, fmt.Errorf("settings: recheck is %s; it must be at least 100ms", s.Recheck))
	}
	if s.Drain < 0 {
		errs = append(errs, fmt.Errorf("settings: drain is %s; it must be at least 0s", s.Drain))
	}
	if !run.ValidBudget(s.Policy.Budget) {
		errs = append(errs, fmt.Errorf("settings: policy.budget_usd is %g; it must be a number from 0 to %.0f",
			s.Policy.Budget, run.MaxBudgetUSD))
	}
	errs = append(errs, s.PerDay.check(), s.AtOnce.check(), s.Sandbox.check(), s.Console.check(), s.Forge.check(),
		s.Metrics.check(),
		s.Deployment.check())
	return s, errors.Join(errs...)
}

func pointers(all Words) []*string {
	var out []*string
	for i := range all {
		out = append(out, &all[i])
	}
	return out
}

// address is one that calls may reach.
var address = lazyregexp.New(`^((\*\.)?[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?|\[[0-9a-fA-F:.]+\])(:[0-9]{1,5})?$`)

func (s Sandbox) check() error {
	var errs []error
	if !slices.Contains([]string{"", "none", "workspace", "strict"}, s.Mode) {
		errs = append(errs, fmt.Errorf("settings: sandbox.mode is %q; it must be none, workspace or strict", s.Mode))
	}
	for _, a := range s.Network {
		if !address.MatchString(a) || len(s.Network) > 1 && (a == "host" || a == "none") {
			errs = append(errs, fmt.Errorf("settings: sandbox.network: %q is not an address; write host, none, or a list of "+
				"internet, HOST, HOST:PORT and *.DOMAIN", a))
		}
	}
	for _, path := range slices.Concat(s.Read, s.Write) {
		if !filepath.IsAbs(path) && !strings.HasPrefix(path, "~/") {
			errs = append(errs, fmt.Errorf("settings: sandbox.read and sandbox.write: %s must be absolute or begin "+
				"with ~/", path))
		}
	}
	return errors.Join(errs...)
}

// Scratch returns the folder in which agents work.
func (s Settings) Scratch() string { return filepath.Join(s.StateDir, "scratch") }

// LocalStore reports whether the store is a folder of this host. All work on its runs then stays on this host.
func (s Settings) LocalStore() bool { return strings.HasPrefix(s.Store, "file://") }
