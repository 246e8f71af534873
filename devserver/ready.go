package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/server/common/headers"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
)

const (
	healthTimeout  = 60 * time.Second
	healthInterval = 20 * time.Millisecond
	uiModule       = "github.com/temporalio/ui-server/v2"
)

// ready is the one line on stdout. Everything it names answers by the time it is written.
type ready struct {
	Ready     bool   `json:"ready"`
	Address   string `json:"address"`
	UI        string `json:"ui,omitempty"`
	Namespace string `json:"namespace"`
	DB        string `json:"db,omitempty"` // absent: in memory
	PID       int    `json:"pid"`
	Version   string `json:"version"`
}

func (s *server) announce(stdout io.Writer, db string) error {
	r := ready{Ready: true, Address: s.address, Namespace: s.namespaces[0], PID: os.Getpid(),
		Version: headers.ServerVersion}
	if s.ui != nil {
		r.UI = "http://" + s.uiAddress
	}
	if db != "" {
		path, err := filepath.Abs(db)
		if err != nil {
			return fmt.Errorf("name the database %s: %w", db, err)
		}
		r.DB = path
	}
	line, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("encode the ready line: %w", err)
	}
	if _, err := stdout.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("write the ready line: %w", err)
	}
	return nil
}

// awaitHealth returns when the frontend serves every namespace and the Web UI answers.
func (s *server) awaitHealth(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	trust, err := s.credentials()
	if err != nil {
		return err
	}
	conn, err := grpc.NewClient(s.address, grpc.WithTransportCredentials(trust))
	if err != nil {
		return fmt.Errorf("reach the frontend: %w", err)
	}
	defer conn.Close()
	if err := until(ctx, func() error { return s.frontendHealth(ctx, conn) }); err != nil {
		return fmt.Errorf("the frontend on %s did not become healthy: %w", s.address, err)
	}
	if s.ui == nil {
		return nil
	}
	if err := until(ctx, func() error { return uiHealth(ctx, s.uiAddress) }); err != nil {
		return fmt.Errorf("the Web UI on %s did not answer: %w", s.uiAddress, err)
	}
	return nil
}

// credentials are those of a client in this process.
func (s *server) credentials() (credentials.TransportCredentials, error) {
	if s.certs == "" {
		return insecure.NewCredentials(), nil
	}
	pool, err := s.certs.pool()
	if err != nil {
		return nil, err
	}
	return credentials.NewTLS(s.certs.client(nameSystem, pool)), nil
}

func (s *server) frontendHealth(ctx context.Context, conn *grpc.ClientConn) error {
	r, err := healthpb.NewHealthClient(conn).Check(ctx,
		&healthpb.HealthCheckRequest{Service: "temporal.api.workflowservice.v1.WorkflowService"})
	if err != nil {
		return err
	}
	if r.Status != healthpb.HealthCheckResponse_SERVING {
		return fmt.Errorf("status %s", r.Status)
	}
	for _, ns := range s.namespaces {
		_, err := workflowservice.NewWorkflowServiceClient(conn).DescribeNamespace(ctx,
			&workflowservice.DescribeNamespaceRequest{Namespace: ns})
		if err != nil {
			return fmt.Errorf("namespace %s: %w", ns, err)
		}
	}
	return nil
}

func uiHealth(ctx context.Context, address string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/healthz", nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("answered %s", resp.Status)
	}
	return nil
}

// until repeats check until it holds; when the time is up, it returns what was last missing.
func until(ctx context.Context, check func() error) error {
	tick := time.NewTicker(healthInterval)
	defer tick.Stop()
	for {
		err := check()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w (last: %w)", ctx.Err(), err)
		case <-tick.C:
		}
	}
}

// versionLine has the form of `temporal --version`, so one reader serves both.
func versionLine() string {
	ui := "unknown"
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			if m.Path == uiModule {
				ui = strings.TrimPrefix(m.Version, "v")
			}
		}
	}
	return fmt.Sprintf("passbook devserver (Server %s, UI %s)", headers.ServerVersion, ui)
}
