package cursorwire

// The paths of the streams and of appends (section 1.1).
const (
	// PathRun is a stream in both directions; HTTP/2 only.
	PathRun = "/agent.v1.AgentService/Run"
	// PathRunSSE is the server's half of a run; the client's messages come as appends.
	PathRunSSE = "/agent.v1.AgentService/RunSSE"
	// PathBidiAppend carries one message of the client.
	PathBidiAppend = "/aiserver.v1.BidiService/BidiAppend"
	// PathRunPoll is PathRunSSE for clients whose proxies hold streams back.
	PathRunPoll = "/agent.v1.AgentService/RunPoll"
)
