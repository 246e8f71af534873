package connect

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"

	"go.temporal.io/sdk/contrib/envconfig"

	"github.com/passbook-run/passbook/internal/durable"
	"github.com/passbook-run/passbook/internal/local"
)

// profileName is the profile of the embedded server.
const profileName = "passbook"

// UseServer lets the temporal CLI and tctl of a terminal reach the embedded server. program is the starter.
// With a server in TEMPORAL_ADDRESS or in a profile it changes nothing.
func UseServer(program string) string { return `eval "$(` + program + ` server env)"` }

// WriteProfile writes the profile of a server into the configuration file of the temporal CLI, and returns the file.
// All other text in it stays as it is.
func WriteProfile(s local.Server) (file string, err error) {
	if file = os.Getenv("TEMPORAL_CONFIG_FILE"); file == "" {
		if file = envconfig.DefaultConfigFilePath(); file == "" {
			return "", errors.New("write the profile: the user has no configuration directory; set TEMPORAL_CONFIG_FILE")
		}
	}
	if real, err := filepath.EvalSymlinks(file); err == nil {
		file = real
	}
	before, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return file, fmt.Errorf("write the profile: %w", err)
	}
	mode := fs.FileMode(0o600)
	if info, err := os.Stat(file); err == nil {
		mode = info.Mode().Perm()
	}
	after, err := replaceProfile(string(before), profileOf(s))
	if err != nil {
		return file, fmt.Errorf("write the profile into %s: %w", file, err)
	}
	if err := (durable.Disk{}).Mkdir(filepath.Dir(file), 0o700); err != nil {
		return file, fmt.Errorf("write the profile: %w", err)
	}
	if err := (durable.Disk{}).WriteFile(file, []byte(after), mode); err != nil {
		return file, fmt.Errorf("write the profile: %w", err)
	}
	return file, nil
}

// profileOf returns the profile as envconfig reads it.
func profileOf(s local.Server) profile {
	env := map[string]string{}
	for _, pair := range s.SetEnv() {
		name, value, _ := strings.Cut(pair, "=")
		env[name] = value
	}
	p := profile{Address: env["TEMPORAL_ADDRESS"], Namespace: env["TEMPORAL_NAMESPACE"]}
	if cert := env["TEMPORAL_TLS_CLIENT_CERT_PATH"]; cert != "" {
		p.TLS = &envconfig.ClientConfigTLS{ClientCertPath: cert, ClientKeyPath: env["TEMPORAL_TLS_CLIENT_KEY_PATH"],
			ServerCACertPath: env["TEMPORAL_TLS_SERVER_CA_CERT_PATH"]}
	}
	return p
}

// tables finds the tables of the profile: the header, and all lines up to the last setting. Comments after it belong to
// what follows.
var tables = regexp.MustCompile(`(?m)^[ \t]*\[[ \t]*profile[ \t]*\.[ \t]*["']?` + profileName +
	`["']?[ \t]*(\.[^\]\n]*)?\][^\n]*\n?((([ \t]*(#[^\n]*)?\n)*)[ \t]*[^\s#\[][^\n]*\n?)*`)

// replaceProfile returns the text of a configuration file with the profile. It fails if the text cannot be edited
// without changing another profile.
func replaceProfile(text string, p profile) (string, error) {
	others, err := profilesIn(text)
	if err != nil {
		return "", err
	}
	rest := tables.ReplaceAllLiteralString(text, "")
	if rest = strings.TrimRight(rest, " \t\n"); rest != "" {
		rest += "\n\n"
	}
	rest += table(p)
	got, err := profilesIn(rest)
	if err != nil || !reflect.DeepEqual(got[profileName], &p) {
		return "", byHandProfile(p)
	}
	for _, m := range []map[string]*profile{others, got} {
		delete(m, profileName)
	}
	if !maps.EqualFunc(others, got, func(a, b *profile) bool { return reflect.DeepEqual(a, b) }) {
		return "", byHandProfile(p)
	}
	return rest, nil
}

func byHandProfile(p profile) error {
	return fmt.Errorf("its form of the profile %s cannot be edited; replace it by hand:\n\n%s", profileName, table(p))
}

func profilesIn(text string) (map[string]*profile, error) {
	var all envconfig.ClientConfig
	if err := all.FromTOML([]byte(text), envconfig.ClientConfigFromTOMLOptions{}); err != nil {
		return nil, err
	}
	if all.Profiles == nil {
		all.Profiles = map[string]*profile{}
	}
	return all.Profiles, nil
}

// table returns a profile as TOML.
func table(p profile) string {
	var b strings.Builder
	fmt.Fprintf(&b, "[profile.%s]\naddress = %s\nnamespace = %s\n", profileName, basic(p.Address), basic(p.Namespace))
	if p.TLS != nil {
		fmt.Fprintf(&b, "\n[profile.%s.tls]\n", profileName)
		for _, row := range [][2]string{{"client_cert_path", p.TLS.ClientCertPath},
			{"client_key_path", p.TLS.ClientKeyPath}, {"server_ca_cert_path", p.TLS.ServerCACertPath}} {
			fmt.Fprintf(&b, "%s = %s\n", row[0], basic(row[1]))
		}
	}
	return b.String()
}

// basic returns a TOML basic string, of whose escapes those of JSON are a part.
func basic(s string) string {
	text, err := json.Marshal(s)
	if err != nil {
		panic(err) // a string has a JSON form
	}
	return string(text)
}
