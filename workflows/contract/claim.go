package contract

import "strings"

// HostClaim is a host's claim of a call and when it expires.
type HostClaim struct {
	Host  string `json:"host"`
	Until string `json:"until"`
}

// Suffix returns the suffix of the id of an activity that waits for that host, for [ClaimInActivityID].
func (e HostClaim) Suffix() string { return claimMark + e.Host + "/" + e.Until }

const claimMark = "@"

// ClaimInActivityID returns the claim that an activity waits for, and whether there is one.
func ClaimInActivityID(activityID string) (HostClaim, bool) {
	_, claimed, ok := strings.Cut(activityID, claimMark)
	host, until, both := strings.Cut(claimed, "/")
	return HostClaim{Host: host, Until: until}, ok && both
}
