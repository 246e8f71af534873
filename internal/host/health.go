package host

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	namespacepb "go.temporal.io/api/namespace/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/passbook-run/passbook/internal/certs"
)

// retention is how long a closed run stays readable; the default of start-dev, 24 hours, is less than a weekend.
const retention = 90 * 24 * time.Hour

// awaitServer returns when the server serves the namespace and its Web UI answers. A daemon must have written its
// ready line, because another process may answer on the port.
func (o *ServerOptions) awaitServer(ctx context.Context, s Server, d *daemon) error {
	return d.await(ctx, o.StartTimeout, func(ctx context.Context) error {
		if !s.Process.Alive() {
			return errEnded
		}
		if err := d.announced(s.Binary); err != nil {
			return err
		}
		if err := o.serves(ctx, s); err != nil {
			return err
		}
		return answers(ctx, s.UI)
	})
}

// announced checks for the ready line of the embedded server. The temporal CLI writes none.
func (d *daemon) announced(binary string) error {
	if d == nil || d.mute {
		return nil
	}
	text, err := d.output()
	if err != nil {
		return err
	}
	for line := range bytes.Lines(text) {
		var r struct {
			Ready bool `json:"ready"`
			PID   int  `json:"pid"`
		}
		if json.Unmarshal(line, &r) == nil && r.Ready && r.PID == d.id.PID {
			return nil
		}
	}
	return fmt.Errorf("%s has not written its ready line", binary)
}

func (o *ServerOptions) serves(ctx context.Context, s Server) error {
	trust, err := s.TLS(certs.CLI)
	if err != nil {
		return err
	}
	c, err := client.DialContext(ctx,
		client.Options{HostPort: s.Address, Namespace: o.Namespace,
			ConnectionOptions: client.ConnectionOptions{TLS: trust},
			Logger:            log.NewStructuredLogger(slog.New(slog.DiscardHandler))})
	if err != nil {
		return err
	}
	defer c.Close()
	if _, err := c.CheckHealth(ctx, &client.CheckHealthRequest{}); err != nil {
		return err
	}
	if err := o.settleNamespace(ctx, c.WorkflowService()); err != nil {
		return fmt.Errorf("namespace %s: %w", o.Namespace, err)
	}
	if err := o.settleAttributes(ctx, c.OperatorService()); err != nil {
		return fmt.Errorf("search attributes of namespace %s: %w", o.Namespace, err)
	}
	return nil
}

// settleNamespace creates the namespace of a running server and sets its retention, as a start does.
func (o *ServerOptions) settleNamespace(ctx context.Context, c workflowservice.WorkflowServiceClient) error {
	r, err := c.DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: o.Namespace})
	if missing := (*serviceerror.NamespaceNotFound)(nil); errors.As(err, &missing) {
		_, err = c.RegisterNamespace(ctx,
			&workflowservice.RegisterNamespaceRequest{Namespace: o.Namespace,
				WorkflowExecutionRetentionPeriod: durationpb.New(retention)})
		return err
	}
	if err != nil || r.GetConfig().GetWorkflowExecutionRetentionTtl().AsDuration() == retention {
		return err
	}
	_, err = c.UpdateNamespace(ctx, &workflowservice.UpdateNamespaceRequest{
		Namespace: o.Namespace,
		Config:    &namespacepb.NamespaceConfig{WorkflowExecutionRetentionTtl: durationpb.New(retention)},
	})
	return err
}

func (o *ServerOptions) settleAttributes(ctx context.Context, c operatorservice.OperatorServiceClient) error {
	if len(o.SearchAttributes) == 0 {
		return nil
	}
	r, err := c.ListSearchAttributes(ctx, &operatorservice.ListSearchAttributesRequest{Namespace: o.Namespace})
	if err != nil {
		return err
	}
	missing := map[string]enumspb.IndexedValueType{}
	for name, word := range o.SearchAttributes {
		if _, there := r.CustomAttributes[name]; there {
			continue
		}
		if missing[name], err = enumspb.IndexedValueTypeFromString(word); err != nil {
			return err
		}
	}
	if len(missing) == 0 {
		return nil
	}
	_, err = c.AddSearchAttributes(ctx,
		&operatorservice.AddSearchAttributesRequest{Namespace: o.Namespace, SearchAttributes: missing})
	return err
}

func answers(ctx context.Context, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/healthz", nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("the Web UI: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("the Web UI on %s answered %s", url, resp.Status)
	}
	return nil
}
