package cursor

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"sync"

	"github.com/roost-dev/roost/internal/catalog"
	"github.com/roost-dev/roost/internal/cursorwire"
	"github.com/roost-dev/roost/internal/session"
)

// callsOptions is what the calls beside a run need. Models, Default and Blobs are required. All of it
// is safe for concurrent use.
type callsOptions struct {
	Models   func() []catalog.Model
	Default  func() session.ModelRef
	Aliases  map[string]session.ModelRef
	Thinking session.Thinking // that of a client that asks for none
	Blobs    Blobs
	// Ask puts one short question to a model and returns its answer. Without it there are no titles
	// and no commit messages.
	Ask func(ctx context.Context, model session.ModelRef, system, text string) (string, error)
	// Clone makes the conversation to a copy of from, if there is one; nil leaves it to the state
	// that the client sends with the first run.
	Clone func(ctx context.Context, from, to string) error
	// Rename names a conversation, if there is one, and Named reports whether it has a name already.
	// Both may be nil.
	Rename func(ctx context.Context, conversation, name string) error
	Named  func(ctx context.Context, conversation string) bool
	Logger *slog.Logger // nil discards
}

// calls answers everything that clients ask beside a run: logins, settings, models, titles, uploads
// (section 9). Most answers are empty, because a client must start without an account, a team and a
// price. No answer holds a provider's key.
type calls struct {
	opt     callsOptions
	names   modelNames
	log     *slog.Logger
	uploads chan struct{} // a slot for each upload that is in memory
	asking  chan struct{} // a slot for each question to a model

	mu      sync.Mutex
	unknown map[string]bool // the paths that were logged; guarded by mu
}

const (
	maxUploads = 2
	maxAsking  = 4
	// maxUnknown bounds the paths that are remembered; later ones are not logged.
	maxUnknown = 256
)

func newCalls(opt callsOptions) *calls {
	log := opt.Logger
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &calls{
		opt:     opt,
		names:   newModelNames(Options{Models: opt.Models, Default: opt.Default, Aliases: opt.Aliases, Thinking: opt.Thinking}),
		log:     log,
		uploads: make(chan struct{}, maxUploads),
		asking:  make(chan struct{}, maxAsking),
		unknown: make(map[string]bool),
	}
}

// TokenPaths are the paths whose answer is the caller's own token, so that their handlers need to see
// it (section 1.2).
func TokenPaths() []string { return []string{pathExchange, pathPoll} }

// LargePaths are the paths whose bodies the front end limits itself: streams have no end, and appends
// and uploads are longer than what other calls may send.
func LargePaths() []string {
	return []string{
		cursorwire.PathRun, cursorwire.PathRunSSE, "/agent.v1.AgentService/RunPoll",
		cursorwire.PathBidiAppend, pathUpload,
	}
}

// The services that answer.
const (
	agentService     = "/agent.v1.AgentService/"
	aiService        = "/aiserver.v1.AiService/"
	analyticsService = "/aiserver.v1.AnalyticsService/"
	dashboardService = "/aiserver.v1.DashboardService/"
	healthService    = "/aiserver.v1.HealthService/"
)

// emptyCalls are answered with an empty message: no team, no plan, no limit, no plugins, nothing to
// tell, and thanks for the telemetry, which is thrown away.
var emptyCalls = []string{
	"/aiserver.v1.NetworkService/IsConnected",
	aiService + "GetThoughtAnnotation",
	aiService + "GetDefaultModelNudgeData",
	agentService + "GetAllowedModelIntents",
	analyticsService + "SubmitLogs",
	analyticsService + "TrackEvents",
	analyticsService + "Batch",
	analyticsService + "GetFirstWindowStatsigDecision",
	dashboardService + "GetTeamAdminSettingsOrEmptyIfNotInTeam",
	dashboardService + "GetTeamReposOrEmptyIfNotInTeam",
	dashboardService + "GetManagedSkills",
	dashboardService + "GetEffectiveUserPlugins",
	dashboardService + "ListMarketplaces",
	dashboardService + "GetGlobalCommands",
	dashboardService + "GetCliDownloadUrl",
	dashboardService + "RegisterMarketplaceAndPlugins",
	dashboardService + "GetPlanInfo",
	dashboardService + "GetCurrentPeriodUsage",
	dashboardService + "GetUsageLimitStatusAndActiveGrants",
	dashboardService + "IsOnNewPricing",
	dashboardService + "GetTokenUsage",
	dashboardService + "GetTeams",
	dashboardService + "GetGlassEarlyPreviewEnrollment",
}

// register adds the routes to mux, and "/" for the calls that nobody serves.
func (c *calls) register(mux *http.ServeMux) {
	for _, path := range emptyCalls {
		mux.HandleFunc(path, c.empty)
	}
	for path, h := range c.handlers() {
		mux.HandleFunc(path, c.unary(maxUnary, h))
	}
	mux.HandleFunc(pathUpload, c.upload)
	c.registerREST(mux)
	mux.HandleFunc("/", c.notServed)
}

// handlers returns what answers each call with more than an empty message.
func (c *calls) handlers() map[string]unaryHandler {
	return map[string]unaryHandler{
		"/aiserver.v1.ServerConfigService/GetServerConfig": serverConfig,
		aiService + "GetServerConfig":                      serverConfig,
		dashboardService + "GetUserPrivacyMode":            privacyMode,
		dashboardService + "GetMe":                         getMe,
		"/aiserver.v1.AuthService/GetEmail":                getEmail,
		analyticsService + "BootstrapStatsig":              bootstrap,
		aiService + "ServerTime":                           serverTime,
		aiService + "HealthCheck":                          healthCheck,
		healthService + "Ping":                             echoPayload,
		healthService + "Unary":                            echoPayload,
		aiService + "CountTokens":                          countTokens,

		aiService + "AvailableModels":          c.availableModels,
		aiService + "GetDefaultModel":          c.defaultModel,
		aiService + "GetUsableModels":          c.usableModels,
		aiService + "GetDefaultModelForCli":    c.defaultModelForCLI,
		agentService + "GetUsableModels":       c.agentUsableModels,
		agentService + "GetDefaultModelForCli": c.agentDefaultModelForCLI,

		agentService + "NameAgent":                  c.nameAgent,
		aiService + "NameTab":                       c.nameTab,
		aiService + "WriteGitCommitMessage":         c.commitMessage,
		aiService + "WriteGitBranchName":            c.branchName,
		agentService + "NotifyConversationClone":    c.clone,
		agentService + "UpdateConversationMetadata": c.metadata,
	}
}

// notServed answers what has no route. Calls of the protocol get an error in its own form, and are
// logged once each: a new version of a client shows itself there.
func (c *calls) notServed(w http.ResponseWriter, r *http.Request) {
	if !strings.HasPrefix(r.URL.Path, "/aiserver.v1.") && !strings.HasPrefix(r.URL.Path, "/agent.v1.") {
		http.NotFound(w, r)
		return
	}
	if c.isNews(r.URL.Path) {
		c.log.Info("a client asked for a call that is not served", slog.String("path", r.URL.Path))
	}
	writeUnary(w, cursorwire.JSON.UnaryType(), http.StatusNotFound, cursorwire.MarshalError(cursorwire.NewError(cursorwire.Unimplemented, "")))
}

// isNews reports whether path has not been logged yet and may be.
func (c *calls) isNews(path string) bool {
	const maxPath = 200
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(path) > maxPath || len(c.unknown) >= maxUnknown || c.unknown[path] {
		return false
	}
	c.unknown[path] = true
	return true
}
