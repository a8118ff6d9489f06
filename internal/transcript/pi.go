package transcript

import "encoding/json"

// The lines of pi's session file, version 3 (SPEC pi 8.2). The first is a piHeader; each
// other is an entry of a tree whose edges are parentId.
type (
	piHeader struct {
		Type      string `json:"type"` // "session"
		Version   int    `json:"version"`
		ID        string `json:"id"`
		Timestamp string `json:"timestamp"`
		Cwd       string `json:"cwd"`
	}
	piEntry struct {
		Type      string  `json:"type"`
		ID        string  `json:"id"`
		ParentID  *string `json:"parentId"` // null at the root
		Timestamp string  `json:"timestamp"`

		Message       json.RawMessage `json:"message,omitempty"`       // message
		Provider      string          `json:"provider,omitempty"`      // model_change
		ModelID       string          `json:"modelId,omitempty"`       // model_change
		ThinkingLevel string          `json:"thinkingLevel,omitempty"` // thinking_level_change
		Name          string          `json:"name,omitempty"`          // session_info
		Summary       string          `json:"summary,omitempty"`       // compaction, branch_summary
		FirstKept     string          `json:"firstKeptEntryId,omitempty"`
		TokensBefore  *int64          `json:"tokensBefore,omitempty"` // compaction
		Content       json.RawMessage `json:"content,omitempty"`      // custom_message
		TargetID      *string         `json:"targetId,omitempty"`     // leaf: where the session went to
	}
	piMessage struct {
		Role      string          `json:"role"`    // user, assistant, toolResult; others are read only
		Content   json.RawMessage `json:"content"` // a list of piBlock; of a user also a string
		Timestamp int64           `json:"timestamp"`

		API           string     `json:"api,omitempty"` // assistant
		Provider      string     `json:"provider,omitempty"`
		Model         string     `json:"model,omitempty"`
		ResponseModel string     `json:"responseModel,omitempty"`
		Usage         *usageLine `json:"usage,omitempty"`
		StopReason    string     `json:"stopReason,omitempty"`
		ErrorMessage  string     `json:"errorMessage,omitempty"`

		ToolCallID string          `json:"toolCallId,omitempty"` // toolResult
		ToolName   string          `json:"toolName,omitempty"`
		Details    json.RawMessage `json:"details,omitempty"`
		IsError    *bool           `json:"isError,omitempty"`

		Command string `json:"command,omitempty"` // bashExecution
		Output  string `json:"output,omitempty"`
		Exclude bool   `json:"excludeFromContext,omitempty"`
	}
	piBlock struct {
		Type              string          `json:"type"` // text, thinking, image, toolCall
		Text              *string         `json:"text,omitempty"`
		Thinking          *string         `json:"thinking,omitempty"`
		ThinkingSignature string          `json:"thinkingSignature,omitempty"`
		Redacted          bool            `json:"redacted,omitempty"`
		Data              []byte          `json:"data,omitempty"` // base64
		MIMEType          string          `json:"mimeType,omitempty"`
		ID                string          `json:"id,omitempty"`
		Name              string          `json:"name,omitempty"`
		Arguments         json.RawMessage `json:"arguments,omitempty"`
	}
)

const piVersion = 3
