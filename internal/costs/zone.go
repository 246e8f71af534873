package costs

import "time"

// zoneName returns the name of a time zone. That of local time is its abbreviation: CET.
func zoneName(zone *time.Location) string {
	if zone == time.Local {
		return time.Now().Format("MST")
	}
	return zone.String()
}
