// Package clouds makes the bucket URLs of cloud services known to package
// store: s3:// (and services that speak its protocol), gs:// and azblob://.
// Import it, for that effect only, in a program that opens such stores. The
// URLs and the places of the credentials are those of gocloud.dev.
package clouds

import (
	_ "gocloud.dev/blob/azureblob" // azblob://container
	_ "gocloud.dev/blob/gcsblob"   // gs://bucket
	_ "gocloud.dev/blob/s3blob"    // s3://bucket?region=eu-central-1
)
