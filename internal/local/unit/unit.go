// Package unit installs the keeper as a service of the user: a user unit of systemd, or an agent of launchd.
//
// Stopping the service leaves worker and server running, so a running call survives. A keeper that ends because there
// is nothing to keep is not restarted.
package unit

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/xml"
	"errors"
	"fmt"
	"strings"
)

// Service is a keeper as a service manager runs it.
type Service struct {
	StateDir string
	Exec     string   // absolute path of the program
	Args     []string // that make it a keeper
	Env      []string // NAME=value
}

// Name returns a name that differs for each state directory.
func (s Service) Name() string {
	sum := sha256.Sum256([]byte(s.StateDir))
	return "passbook-" + hex.EncodeToString(sum[:4])
}

// systemd refuses these in the path of a program, quoted or not.
const refusedInProgram = "\"'\\"

// Systemd returns the unit file.
func (s Service) Systemd() ([]byte, error) {
	if strings.ContainsAny(s.Exec, refusedInProgram) || strings.ContainsFunc(s.Exec, control) {
		return nil, fmt.Errorf("write the systemd unit: systemd accepts no quotes, backslashes and control "+
			"characters in the path of a program: %q; install the program elsewhere", s.Exec)
	}
	if strings.ContainsFunc(s.StateDir, control) {
		return nil, fmt.Errorf("write the systemd unit: the state directory %q has a control character in its name; "+
			"choose another", s.StateDir)
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, `# Written by "starter server install"; "starter server uninstall" removes it.
[Unit]
Description=Passbook keeper of %s
StartLimitIntervalSec=120
StartLimitBurst=10

[Service]
Type=exec
ExecStart="%s"`, percent.Replace(s.StateDir), percent.Replace(s.Exec))
	for _, arg := range s.Args {
		fmt.Fprintf(&b, ` "%s"`, strings.ReplaceAll(quoted.Replace(arg), "$", "$$"))
	}
	b.WriteByte('\n')
	for _, pair := range s.Env {
		fmt.Fprintf(&b, "Environment=\"%s\"\n", quoted.Replace(pair))
	}
	b.WriteString(`KillMode=process
Restart=on-failure
RestartSec=1

[Install]
WantedBy=default.target
`)
	return b.Bytes(), nil
}

func control(r rune) bool { return r < ' ' || r == 0x7f }

var (
	percent = strings.NewReplacer("%", "%%")
	quoted  = strings.NewReplacer("%", "%%", `\`, `\\`, `"`, `\"`, "\n", `\n`, "\t", `\t`, "\r", `\r`)
)

// Label is the service's name for launchd.
func (s Service) Label() string { return "run.passbook." + strings.TrimPrefix(s.Name(), "passbook-") }

// Launchd returns the property list. log is where the keeper's output goes.
func (s Service) Launchd(log string) ([]byte, error) {
	var b bytes.Buffer
	var failed error
	text := func(tag, value string) {
		fmt.Fprintf(&b, "<%s>", tag)
		failed = errors.Join(failed, xml.EscapeText(&b, []byte(value)))
		fmt.Fprintf(&b, "</%s>\n", tag)
	}
	b.WriteString(xml.Header + `<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" ` +
		`"http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
`)
	text("key", "Label")
	text("string", s.Label())
	text("key", "ProgramArguments")
	b.WriteString("<array>\n")
	for _, arg := range append([]string{s.Exec}, s.Args...) {
		text("string", arg)
	}
	b.WriteString("</array>\n")
	text("key", "EnvironmentVariables")
	b.WriteString("<dict>\n")
	for _, pair := range s.Env {
		name, value, _ := strings.Cut(pair, "=")
		text("key", name)
		text("string", value)
	}
	b.WriteString("</dict>\n")
	text("key", "StandardOutPath")
	text("string", log)
	text("key", "StandardErrorPath")
	text("string", log)
	b.WriteString(`<key>RunAtLoad</key>
<true/>
<key>KeepAlive</key>
<dict>
<key>SuccessfulExit</key>
<false/>
</dict>
<key>ThrottleInterval</key>
<integer>1</integer>
<key>AbandonProcessGroup</key>
<true/>
</dict>
</plist>
`)
	return b.Bytes(), failed
}
