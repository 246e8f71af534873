package config

import (
	"errors"
	"fmt"

	"github.com/passbook-run/passbook/internal/lazyregexp"
)

// Deployment configures Worker Deployment Versioning of the workers of a cluster. It has no effect on the embedded
// server.
type Deployment struct {
	Name string `mapstructure:"name"` // of the Worker Deployment; empty: workers are not versioned
	// version of this build in it; empty: that of the release
	BuildID string `mapstructure:"build_id"`
}

var (
	deploymentName = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9_-]{0,99}$`)
	buildID        = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9._+-]{0,99}$`)
)

func (d Deployment) check() error {
	var errs []error
	if d.Name != "" && !deploymentName.MatchString(d.Name) {
		errs = append(errs, fmt.Errorf("settings: deployment.name is %q; use letters, digits, - and _", d.Name))
	}
	if d.BuildID != "" && !buildID.MatchString(d.BuildID) {
		errs = append(errs, fmt.Errorf("settings: deployment.build_id is %q; write a version, such as v0.1.0", d.BuildID))
	}
	return errors.Join(errs...)
}
