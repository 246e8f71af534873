package view

// Quality is the quality of the work so far (TM-09). The demo ends with 56/56, 56, 55, 2, 0.
type Quality struct {
	Passed, Judged int // validations of numbered passes: passed, and all
	Warnings       int // of these validations
	Notes          []Note
	Unmodified     int // passes that left the artifact unchanged
	Retries        int // attempts that were repeated, of every kind of pass
	Recovered      int // recovered errors
	Unrecovered    int
}

// Note is one of the run's notes files and its number of entries: conviction and discovery in the seed's pipeline.
type Note struct {
	Name    string
	Entries int
}

func qualityOf(s Source) Quality {
	q := Quality{Unmodified: s.State.Passes.Unmodified, Retries: s.State.Passes.Retries}
	for _, r := range s.Records.PassRecords {
		q.Judged++
		q.Warnings += len(r.ValidationDetails.Warnings)
		if r.ValidationPassed {
			q.Passed++
		}
	}
	for i, n := range s.State.Notes {
		entries := n.Entries
		switch i { // state.json counts the first two
		case 0:
			entries = s.Records.ConvictionEntryCount
		case 1:
			entries = s.Records.DiscoveryEntryCount
		}
		q.Notes = append(q.Notes, Note{Name: n.Name, Entries: entries})
	}
	for _, e := range s.Records.ErrorHistory {
		switch {
		case e.IsRevert():
		case e.Recovered:
			q.Recovered++
		default:
			q.Unrecovered++
		}
	}
	return q
}
