package piwire

// ServerSnapshot is all that a server shows of itself (section 2.6). Nil lists
// are written as empty ones.
type ServerSnapshot struct {
	ServerID string // not empty
	Revision int64  // 0 to MaxCount
	Sessions []SessionMetadata
	Models   []ModelMetadata
}

// SessionMetadata is a session in a list (section 2.6). Times are milliseconds
// since 1970.
type SessionMetadata struct {
	ID              string // not empty
	CreatedAt       int64
	UpdatedAt       *int64  // optional
	ParentSessionID string  // optional, "" is absent
	SessionName     *string // optional, may be empty
	Cwd             string  // optional, "" is absent
}

// SessionSnapshot is the whole state of one session (section 2.6). Times are
// milliseconds since 1970; nil lists are written as empty ones.
type SessionSnapshot struct {
	ID               string  // not empty
	Name             *string // optional, may be empty
	Cwd              string  // not empty
	CreatedAt        int64
	UpdatedAt        int64
	Phase            Phase
	Model            ModelRef
	ThinkingLevel    ThinkingLevel
	Attached         bool
	Locked           bool
	Revision         int64 // 0 to MaxCount
	Transcript       []Item
	QueuedSteer      []Item // user items only
	QueuedSteerCount int64  // equal to len(QueuedSteer), though nothing checks it
}

// ModelRef names a model. Both parts are not empty.
type ModelRef struct{ Provider, ID string }

// ModelMetadata describes a model (section 2.2).
type ModelMetadata struct {
	Provider                string // not empty
	ID                      string // not empty
	Name                    string // not empty
	API                     string // not empty
	Reasoning               bool
	Input                   []InputKind // may be empty
	ContextWindow           int64       // tokens, 1 to MaxCount
	MaxTokens               int64       // tokens, 1 to MaxCount
	Cost                    ModelCost
	SupportedThinkingLevels []ThinkingLevel // at least one
	Authenticated           bool
}

// ModelCost is a model's price, finite and not negative, per million tokens.
type ModelCost struct{ Input, Output, CacheRead, CacheWrite float64 }

// Usage is what an item cost (section 2.3). Token counts are 0 to [MaxCount].
type Usage struct {
	Input, Output, CacheRead, CacheWrite int64
	Reasoning                            *int64 // optional
	TotalTokens                          int64
	Cost                                 UsageCost
}

// UsageCost is money, finite and not negative.
type UsageCost struct{ Input, Output, CacheRead, CacheWrite, Total float64 }
