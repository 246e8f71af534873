package cli

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
	"go.temporal.io/api/workflowservice/v1"

	"github.com/passbook-run/passbook/internal/api"
	"github.com/passbook-run/passbook/internal/build"
	"github.com/passbook-run/passbook/internal/format"
	"github.com/passbook-run/passbook/internal/history"
	"github.com/passbook-run/passbook/internal/host"
	"github.com/passbook-run/passbook/run"
)

// versionReport is the output of `version --json`.
type versionReport struct {
	Version  string           `json:"version"`  // of the module; devel: built from a checkout
	Revision string           `json:"revision"` // of the version control system; empty: unknown
	Modified bool             `json:"modified"` // the checkout had uncommitted changes
	Go       string           `json:"go"`
	Platform string           `json:"platform"`
	SDK      string           `json:"temporal_sdk"`
	Formats  []format.Version `json:"formats"`
	Embedded embeddedVersion  `json:"embedded_server"`
	Server   serverVersion    `json:"server"`
}

// embeddedVersion is the server that would be started.
type embeddedVersion struct {
	Path    string `json:"path"`
	Version string `json:"version"`
	Problem string `json:"problem"` // why there is none; empty: there is one
}

// serverVersion is the running server.
type serverVersion struct {
	Address string `json:"address"`
	Version string `json:"version"`
	Cluster string `json:"cluster"`
	Problem string `json:"problem"` // why no server answered; empty: one did
}

func (a *app) version() *cobra.Command {
	cmd := &cobra.Command{
		Use: "version", Short: "Show the versions of the program, its files and the server", Args: cobra.NoArgs,
		Long: `Print the version of this program, of the files that it writes, of the embedded Temporal server, and of the
running server. A server that does not answer is not an error; none is started.`,
	}
	asJSON := jsonFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return show(a, *asJSON, a.versions(cmd.Context()), a.printVersions)
	}
	return cmd
}

func (a *app) versions(ctx context.Context) versionReport {
	r := versionReport{
		Version: build.Version(), Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH,
		Formats: format.All(),
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				r.Revision = s.Value
			case "vcs.modified":
				r.Modified = s.Value == "true"
			}
		}
		for _, m := range info.Deps {
			if m.Path == "go.temporal.io/sdk" {
				r.SDK = m.Version
			}
		}
	}
	ctx, cancel := context.WithTimeout(ctx, api.AskFor)
	defer cancel()
	r.Embedded, r.Server = a.embeddedVersion(ctx), a.serverVersion(ctx)
	return r
}

func (a *app) embeddedVersion(ctx context.Context) embeddedVersion {
	path, there, err := host.CachedServer(host.ServerOptions{StateDir: a.settings.StateDir, Binary: a.settings.Server})
	v := embeddedVersion{Path: path}
	switch {
	case err != nil:
		v.Problem = err.Error()
		return v
	case !there:
		v.Problem = fmt.Sprintf("not built yet; that happens when it is first needed, or with `%s server build`",
			program())
		return v
	}
	if v.Version, err = host.ServerVersion(ctx, path); err != nil {
		v.Problem = err.Error()
	}
	return v
}

func (a *app) serverVersion(ctx context.Context) serverVersion {
	o, err := a.host().Peek(ctx, run.Claim{})
	if err != nil {
		return serverVersion{Problem: err.Error()}
	}
	defer o.Client.Close()
	info, err := o.Client.WorkflowService().GetClusterInfo(ctx, &workflowservice.GetClusterInfoRequest{})
	if err != nil && !history.Denied(err) { // hosted Temporal does not disclose it
		return serverVersion{Problem: err.Error()}
	}
	return serverVersion{Address: o.Address, Version: info.GetServerVersion(), Cluster: info.GetClusterId()}
}

func (a *app) printVersions(r versionReport) {
	revision := ""
	if r.Revision != "" {
		revision = fmt.Sprintf(" (revision %.12s", r.Revision)
		if r.Modified {
			revision += ", modified"
		}
		revision += ")"
	}
	a.row("Passbook", "%s%s", r.Version, revision)
	a.row("Built with", "%s for %s, Temporal SDK %s", r.Go, r.Platform, r.SDK)
	var files []string
	for _, f := range r.Formats {
		files = append(files, fmt.Sprintf("%s %d", f.File[strings.LastIndexByte(f.File, '/')+1:], f.Version))
	}
	a.row("Formats", "%s", strings.Join(files, ", "))
	if r.Embedded.Problem != "" {
		a.row("Embedded", "%s", r.Embedded.Problem)
	} else {
		a.row("Embedded", "Temporal %s: %s", r.Embedded.Version, r.Embedded.Path)
	}
	if r.Server.Problem != "" {
		a.row("Server", "%s", r.Server.Problem)
	} else if r.Server.Version == "" {
		a.row("Server", "Temporal at %s (it does not disclose its version)", r.Server.Address)
	} else {
		a.row("Server", "Temporal %s at %s (cluster %.8s)", r.Server.Version, r.Server.Address, r.Server.Cluster)
	}
}
