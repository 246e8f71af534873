package rundir

import (
	"strings"

	"github.com/passbook-run/passbook/run"
)

// StateSchema is the version of state.json (requirement 002 §1.1).
const StateSchema = 3

// PipelineState is state.json with exactly the names of requirement 002. The fields at the end are those of Passbook:
// lastSeq is the last event that the file contains, which repairs a crash between two files.
type PipelineState struct {
	SchemaVersion           int                      `json:"schemaVersion"`
	RunID                   string                   `json:"runId"`
	ConfigHash              string                   `json:"configHash"`
	StartedAt               string                   `json:"startedAt"`
	LastSavedAt             string                   `json:"lastSavedAt"`
	CompletedAt             *string                  `json:"completedAt"`
	CurrentPhase            string                   `json:"currentPhase"`
	PhaseReason             *string                  `json:"phaseReason"`
	TotalCorpusPasses       int                      `json:"totalCorpusPasses"`
	LastCompletedCorpusPass int                      `json:"lastCompletedCorpusPass"`
	CurrentSubsetID         *string                  `json:"currentSubsetId"`
	CompletedPACycles       int                      `json:"completedPACycles"`
	MaxPACycles             int                      `json:"maxPACycles"`
	LastPAScore             *float64                 `json:"lastPAScore"`
	PAScoreThreshold        *float64                 `json:"paScoreThreshold"`
	PassRecords             map[string]PassRecord    `json:"passRecords"`
	PACycleRecords          map[string]PACycleRecord `json:"paCycleRecords"`
	CurrentArtifactPath     string                   `json:"currentArtifactPath"`
	CurrentArtifactHash     string                   `json:"currentArtifactHash"`
	ArtifactBackups         []string                 `json:"artifactBackups"`
	ConvictionLayerPath     string                   `json:"convictionLayerPath"`
	DiscoveryLogPath        string                   `json:"discoveryLogPath"`
	ConvictionEntryCount    int                      `json:"convictionEntryCount"`
	DiscoveryEntryCount     int                      `json:"discoveryEntryCount"`
	Checkpoints             []CheckpointRecord       `json:"checkpoints"`
	Cost                    CostTracker              `json:"cost"`
	ErrorHistory            []ErrorRecord            `json:"errorHistory"`
	InFlightPass            *InFlightPass            `json:"inFlightPass"`

	InFlightPACycle *InFlightCycle `json:"inFlightPACycle"` // I-19: a cycle under way and what of it is done
	OpenCycle       *PACycleRecord `json:"openCycle"`       // its record so far
	PausedFrom      *string        `json:"pausedFrom"`      // the phase to go back to
	Generation      int            `json:"generation"`      // counts reverts
	SunkCostUSD     float64        `json:"sunkCostUsd"`     // cost of reverted passes
	PendingErrors   []ErrorRecord  `json:"pendingErrors"`   // of attempts whose pass has not ended
	PendingSpend    []PendingSpend `json:"pendingSpend"`    // what attempts have cost whose pass has not ended
	FailedOutputs   map[string]int `json:"failedOutputs"`   // how many failed outputs each evidence folder holds
	Superseded      map[string]int `json:"aside"`           // how often each evidence folder was set aside by a revert
	// how many settled passes have output the artifact or changes, those that a revert left behind included
	Turns   int   `json:"turns,omitempty"`
	LastSeq int64 `json:"lastSeq"`
}

// PendingSpend is what the attempts of one pass have cost that did not settle it.
type PendingSpend struct {
	Context string    `json:"context"`
	Spend   run.Spend `json:"spend"`
}

// PassRecord is one settled numbered pass (requirement 002 §1.2).
type PassRecord struct {
	GlobalPassNumber      int            `json:"globalPassNumber"`
	SubsetPassNumber      int            `json:"subsetPassNumber"`
	SubsetID              string         `json:"subsetId"`
	Rotation              string         `json:"rotation"`
	AgentRole             string         `json:"agentRole"`
	Description           string         `json:"description"`
	StartedAt             string         `json:"startedAt"`
	CompletedAt           string         `json:"completedAt"`
	DurationMS            int64          `json:"durationMs"`
	RetryCount            int            `json:"retryCount"`
	PromptPath            string         `json:"promptPath"`
	RawOutputPath         string         `json:"rawOutputPath"`
	BackupPath            *string        `json:"backupPath"`
	ArtifactPath          *string        `json:"artifactPath"`
	ArtifactHash          *string        `json:"artifactHash"`
	ValidationPassed      bool           `json:"validationPassed"`
	ValidationDetails     run.Validation `json:"validationDetails"`
	Tokens                PassTokens     `json:"tokens"`
	HasConvictionAddition bool           `json:"hasConvictionAddition"`
	HasDiscoveryAddition  bool           `json:"hasDiscoveryAddition"`
	CorpusFilesLoaded     []string       `json:"corpusFilesLoaded"`
	ReferenceFilesLoaded  []string       `json:"referenceFilesLoaded"`
	Outcome               run.Category   `json:"outcome"` // ours: ok, or the category of its final error
}

// PassTokens is the cost of one pass.
type PassTokens struct {
	InputTokens      int64   `json:"inputTokens"`
	OutputTokens     int64   `json:"outputTokens"`
	CacheReadTokens  int64   `json:"cacheReadTokens"`
	CacheWriteTokens int64   `json:"cacheWriteTokens"`
	EstimatedCostUSD float64 `json:"estimatedCostUsd"`
	Estimated        bool    `json:"estimated,omitempty"` // ours: the agent reported no cost
	UnknownCalls     int     `json:"unknownCalls,omitempty"`
}

// CallTokens is the cost of one call of a cycle.
type CallTokens struct {
	InputTokens      int64   `json:"inputTokens"`
	OutputTokens     int64   `json:"outputTokens"`
	EstimatedCostUSD float64 `json:"estimatedCostUsd"`
}

// PACycleRecord is one round of the repeated stage (requirement 002 §1.3).
type PACycleRecord struct {
	CycleNumber       int             `json:"cycleNumber"`
	StartedAt         string          `json:"startedAt"`
	CompletedAt       string          `json:"completedAt"`
	DurationMS        int64           `json:"durationMs"`
	ScreenshotDir     string          `json:"screenshotDir"`
	ScreenshotCount   int             `json:"screenshotCount"`
	Auditors          []AuditorRecord `json:"auditors"`
	Weaver            *ReportRecord   `json:"weaver"`
	Refine            *RefineRecord   `json:"refine"`
	PAScore           *float64        `json:"paScore"`
	MetThreshold      bool            `json:"metThreshold"`
	TotalCycleCostUSD float64         `json:"totalCycleCostUsd"`
}

// AuditorRecord is one member of a group.
type AuditorRecord struct {
	ID         string     `json:"id"`
	ReportPath string     `json:"reportPath"`
	Tokens     CallTokens `json:"tokens"`
	DurationMS int64      `json:"durationMs"`
	Score      *float64   `json:"score,omitempty"`
}

// ReportRecord is the call that judges the round.
type ReportRecord struct {
	ReportPath string     `json:"reportPath"`
	Tokens     CallTokens `json:"tokens"`
	DurationMS int64      `json:"durationMs"`
}

// RefineRecord is the call that revises the artifact after a judgement.
type RefineRecord struct {
	ArtifactPath     *string    `json:"artifactPath"`
	BackupPath       string     `json:"backupPath"`
	Tokens           CallTokens `json:"tokens"`
	DurationMS       int64      `json:"durationMs"`
	ValidationPassed bool       `json:"validationPassed"`
}

// CheckpointRecord is one named checkpoint (requirement 002 §1.4); manifest.json holds the same object.
type CheckpointRecord struct {
	ID               string          `json:"id"`
	CreatedAt        string          `json:"createdAt"`
	AtPassNumber     int             `json:"atPassNumber"`
	AtPACycle        int             `json:"atPACycle"`
	CheckpointDir    string          `json:"checkpointDir"`
	ArtifactHash     string          `json:"artifactHash"`
	StateHash        string          `json:"stateHash"`
	CostAtCheckpoint float64         `json:"costAtCheckpoint"`
	QualitySnapshot  QualitySnapshot `json:"qualitySnapshot"`
}

// QualitySnapshot is how good the work was at a checkpoint.
type QualitySnapshot struct {
	LastPAScore            *float64 `json:"lastPAScore"`
	ValidationFailureCount int      `json:"validationFailureCount"`
	ConvictionEntries      int      `json:"convictionEntries"`
	DiscoveryEntries       int      `json:"discoveryEntries"`
}

// CostTracker is requirement 002 §1.6.
type CostTracker struct {
	TotalInputTokens          int64               `json:"totalInputTokens"`
	TotalOutputTokens         int64               `json:"totalOutputTokens"`
	TotalCacheReadTokens      int64               `json:"totalCacheReadTokens"`
	TotalCacheWriteTokens     int64               `json:"totalCacheWriteTokens"`
	TotalEstimatedCostUSD     float64             `json:"totalEstimatedCostUsd"`
	ByRole                    map[string]RoleCost `json:"byRole"`
	BySubset                  map[string]RoleCost `json:"bySubset"`
	ByPACycle                 map[string]RoleCost `json:"byPACycle"`
	BudgetWarningThresholdUSD float64             `json:"budgetWarningThresholdUsd"`
	BudgetHardCapUSD          float64             `json:"budgetHardCapUsd"`
	WarningThresholdHit       bool                `json:"warningThresholdHit"`
	HardCapHit                bool                `json:"hardCapHit"`
}

// RoleCost is one row of a breakdown.
type RoleCost struct {
	InputTokens  int64   `json:"inputTokens"`
	OutputTokens int64   `json:"outputTokens"`
	CostUSD      float64 `json:"costUsd"`
	PassCount    int     `json:"passCount"`
	UnknownCalls int     `json:"unknownCalls,omitempty"`
}

// InFlightPass is the numbered pass under way.
type InFlightPass struct {
	GlobalPassNumber int    `json:"globalPassNumber"`
	StartedAt        string `json:"startedAt"`
	AgentRole        string `json:"agentRole"`
	SubsetID         string `json:"subsetId"`
}

// InFlightCycle is the round under way.
type InFlightCycle struct {
	Cycle     int             `json:"cycle"`
	StartedAt string          `json:"startedAt"`
	Done      map[string]bool `json:"done"`
}

// NewState returns the records before the first event.
func NewState() PipelineState {
	return PipelineState{
		SchemaVersion:   StateSchema,
		PassRecords:     map[string]PassRecord{},
		PACycleRecords:  map[string]PACycleRecord{},
		ArtifactBackups: []string{},
		Checkpoints:     []CheckpointRecord{},
		ErrorHistory:    []ErrorRecord{},
		PendingErrors:   []ErrorRecord{},
		PendingSpend:    []PendingSpend{},
		FailedOutputs:   map[string]int{},
		Superseded:      map[string]int{},
		Cost: CostTracker{ByRole: map[string]RoleCost{}, BySubset: map[string]RoleCost{},
			ByPACycle: map[string]RoleCost{}},
	}
}

// RevertContext begins the context of a revert, which is recorded among the errors (requirement 002 §5.4).
const RevertContext = "revert-to-"

// IsRevert reports whether the record is a revert, which is no error.
func (r ErrorRecord) IsRevert() bool { return strings.HasPrefix(r.Context, RevertContext) }

// ErrorRecord is one error (requirement 002 §1.5).
type ErrorRecord struct {
	Timestamp          string       `json:"timestamp"`
	Context            string       `json:"context"`
	Category           run.Category `json:"category"`
	Message            string       `json:"message"`
	Recovered          bool         `json:"recovered"`
	RecoveredAtAttempt *int         `json:"recoveredAtAttempt"`
	Diagnostics        string       `json:"diagnostics"`
}

// Terminal reports whether a status is an end of its epoch.
func Terminal(s run.Status) bool { return s.Settled() || s == run.Failed }
