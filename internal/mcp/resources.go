package mcp

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"mime"
	"path"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/passbook-run/passbook/internal/api"
	"github.com/passbook-run/passbook/internal/lazyregexp"
	"github.com/passbook-run/passbook/internal/operations"
	"github.com/passbook-run/passbook/internal/report"
	"github.com/passbook-run/passbook/internal/view"
	"github.com/passbook-run/passbook/rundir"
)

// scheme begins the address of every resource: passbook://runs/ID/…
const scheme = "passbook"

// templates are the addresses of resources.
func templates() []sdk.ResourceTemplate {
	return []sdk.ResourceTemplate{
		{
			Name: "report", Title: "Report of a run", URITemplate: scheme + "://runs/{run}/report.html",
			MIMEType: "text/html", Description: "One page about the work, costs, quality, decisions and errors of a run",
		},
		{
			Name: "evidence", Title: "Record of a run", URITemplate: scheme + "://runs/{run}/evidence.md",
			MIMEType: "text/markdown", Description: "The task, work, checks, decisions and costs of a run",
		},
		{
			Name: "artifact", Title: "Artifact of a run", URITemplate: scheme + "://runs/{run}/artifact",
			Description: "The file that a run revises, as it is now",
		},
		{
			Name: "prompt", Title: "Prompt of a pass", URITemplate: scheme + "://runs/{run}/passes/{seq}/prompt",
			MIMEType: "text/markdown", Description: "What an agent was asked; {seq} is that of passbook_passes",
		},
		{
			Name: "reply", Title: "Reply of a pass", URITemplate: scheme + "://runs/{run}/passes/{seq}/reply",
			MIMEType: "text/plain", Description: "What an agent replied; {seq} is that of passbook_passes",
		},
	}
}

// maxResource is the maximum size of a resource in bytes.
const maxResource = 4 << 20

// shownRuns is the number of runs whose resources are listed: the newest ones.
const shownRuns = 20

type resources struct{ h api.Host }

// listed answers resources/list with the pages of the newest runs of this machine, which change with every run.
func (r resources) listed(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
		out, err := next(ctx, method, req)
		list, ok := out.(*sdk.ListResourcesResult)
		if err != nil || !ok {
			return out, err
		}
		rows, _, err := operations.Here(r.h.Settings.StateDir, r.h.Settings.RunRoot)
		if err != nil {
			return nil, fmt.Errorf("list the runs of this machine: %w", err)
		}
		slices.SortFunc(rows, func(x, y operations.Row) int {
			return cmp.Or(-cmp.Compare(x.StartedAt, y.StartedAt), cmp.Compare(x.RunID, y.RunID))
		})
		for _, row := range rows[:min(len(rows), shownRuns)] {
			list.Resources = append(list.Resources, &sdk.Resource{
				Name: "report of " + row.RunID, Title: fmt.Sprintf("Record of run %s (%s)", row.RunID, row.Pipeline),
				URI: scheme + "://runs/" + row.RunID + "/evidence.md", MIMEType: "text/markdown",
			})
		}
		return list, nil
	}
}

// address is the address of a resource: the run and what it names, and of a pass its event and its text. The name of a
// run is not a path.
var address = lazyregexp.New(`^` + scheme + `://runs/([A-Za-z0-9][A-Za-z0-9_-]*)/` +
	`(report\.html|evidence\.md|artifact|passes/([0-9]{1,18})/(prompt|reply))$`)

// guarded answers resources/read for an address that is none. The SDK would encode some of them to invalid JSON, and
// close the connection.
func guarded(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
		if r, ok := req.(*sdk.ReadResourceRequest); ok && !address.MatchString(r.Params.URI) {
			return nil, errAddress
		}
		return next(ctx, method, req)
	}
}

var errAddress = &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "read a resource: there is none at this " +
	"address; use an address of resources/templates/list"}

// read returns a resource.
func (r resources) read(_ context.Context, req *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
	uri := req.Params.URI
	data, kind, err := r.open(uri)
	switch code := api.CodeOf(err); {
	case err == nil:
	case code == api.CodeNotFound || errors.Is(err, fs.ErrNotExist):
		return nil, sdk.ResourceNotFoundError(uri)
	default:
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: r.h.ProblemOf(err).Message}
	}
	c := &sdk.ResourceContents{URI: uri, MIMEType: kind}
	if utf8.Valid(data) {
		c.Text = string(data)
	} else {
		c.Blob = data
	}
	return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{c}}, nil
}

func (r resources) open(uri string) (data []byte, kind string, err error) {
	at := address.FindStringSubmatch(uri)
	if at == nil {
		return nil, "", fs.ErrNotExist
	}
	d, err := r.h.Find(at[1])
	if err != nil {
		return nil, "", err
	}
	switch at[2] {
	case "report.html":
		var page bytes.Buffer
		err = report.Write(&page, d, report.Options{Pictures: -1})
		data, kind = page.Bytes(), "text/html"
	case "evidence.md":
		data, err = api.EvidencePage(d)
		kind = "text/markdown"
	case "artifact":
		data, kind, err = artifact(d)
	default:
		data, err = ofPass(d, at[3], at[4])
		kind = map[string]string{"prompt": "text/markdown", "reply": "text/plain"}[at[4]]
	}
	if err == nil && len(data) > maxResource {
		err = fmt.Errorf("read %s: it has %d bytes, the maximum is %d; read it in %s", uri, len(data), maxResource, d.Root)
	}
	return data, kind, err
}

func artifact(d rundir.Dir) ([]byte, string, error) {
	a, err := d.Artifact()
	switch {
	case errors.Is(err, rundir.ErrNoArtifact), err == nil && a.Absent:
		return nil, "", fs.ErrNotExist
	case err != nil && a.Now == nil: // the seed may be missing
		return nil, "", err
	}
	return a.Now, cmp.Or(mime.TypeByExtension(path.Ext(a.File)), "text/plain"), nil
}

// ofPass reads the prompt or the reply of a pass.
func ofPass(d rundir.Dir, seq, what string) ([]byte, error) {
	n, err := strconv.ParseInt(seq, 10, 64)
	if err != nil {
		return nil, fs.ErrNotExist
	}
	e, err := view.ReadRecord(d)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(e.Passes, func(p view.Pass) bool { return p.Seq == n })
	if i < 0 {
		return nil, fs.ErrNotExist
	}
	file := e.Passes[i].Prompt
	if what == "reply" {
		file = e.Passes[i].Reply
	}
	if file == "" {
		return nil, fs.ErrNotExist
	}
	return d.ReadFile(file)
}
