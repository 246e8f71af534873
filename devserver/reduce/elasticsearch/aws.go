//go:build ignore

package client

import (
	"errors"
	"net/http"
)

// NewAwsHttpClient refuses to sign requests to Elasticsearch on AWS, which the embedded server does not use.
func NewAwsHttpClient(c ESAWSRequestSigningConfig) (*http.Client, error) {
	if !c.Enabled {
		return nil, nil
	}
	return nil, errors.New("sign requests to Elasticsearch on AWS: this server was built without it")
}
