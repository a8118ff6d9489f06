package openaichat

import "encoding/json"

// request is the body of a request. Messages come last, so that the bytes of a request
// begin with those of the one before, which is what prompt caches go by.
type request struct {
	Model               string         `json:"model"`
	Stream              bool           `json:"stream"`
	StreamOptions       streamOptions  `json:"stream_options"`
	MaxTokens           int            `json:"max_tokens,omitempty"`
	MaxCompletionTokens int            `json:"max_completion_tokens,omitempty"`
	ReasoningEffort     string         `json:"reasoning_effort,omitempty"`
	EnableThinking      *bool          `json:"enable_thinking,omitempty"`
	Thinking            *thinking      `json:"thinking,omitempty"`
	PromptCacheKey      string         `json:"prompt_cache_key,omitempty"`
	Tools               []functionTool `json:"tools,omitempty"`
	Messages            []message      `json:"messages"`
}

type streamOptions struct {
	IncludeUsage bool `json:"include_usage"`
}

type thinking struct {
	Type string `json:"type"`
}

type functionTool struct {
	Type     string   `json:"type"`
	Function function `json:"function"`
}

type function struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters"`
}

// message is one message of a request. Content is a string, a list of parts, or null.
type message struct {
	Role             string          `json:"role"`
	Content          any             `json:"content"`
	ReasoningContent string          `json:"reasoning_content,omitempty"`
	Reasoning        string          `json:"reasoning,omitempty"`
	ReasoningDetails json.RawMessage `json:"reasoning_details,omitempty"`
	ToolCalls        []toolCall      `json:"tool_calls,omitempty"`
	ToolCallID       string          `json:"tool_call_id,omitempty"`
}

type part struct {
	Type     string    `json:"type"`
	Text     string    `json:"text,omitempty"`
	ImageURL *imageURL `json:"image_url,omitempty"`
}

type imageURL struct {
	URL string `json:"url"`
}

type toolCall struct {
	ID       string       `json:"id"`
	Type     string       `json:"type"`
	Function calledByName `json:"function"`
}

type calledByName struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// chunk is one event of an answer. Fields that servers fill in different ways are kept raw.
type chunk struct {
	Model   string          `json:"model"`
	Choices []choice        `json:"choices"`
	Usage   *usage          `json:"usage"`
	Error   json.RawMessage `json:"error"`
}

type choice struct {
	Index        float64         `json:"index"`
	Delta        delta           `json:"delta"`
	FinishReason string          `json:"finish_reason"`
	Usage        *usage          `json:"usage"`
	Error        json.RawMessage `json:"error"`
}

type delta struct {
	Content          json.RawMessage `json:"content"`
	ReasoningContent string          `json:"reasoning_content"`
	Reasoning        string          `json:"reasoning"`
	ReasoningDetails []detail        `json:"reasoning_details"`
	Refusal          string          `json:"refusal"`
	ToolCalls        []callDelta     `json:"tool_calls"`
}

// callDelta is a piece of a tool call. Arguments is a string, or an object on servers that
// do not stream them.
type callDelta struct {
	Index    *float64 `json:"index"`
	ID       string   `json:"id"`
	Function struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	} `json:"function"`
}

// detail is a piece of reasoning as OpenRouter tells it. Pieces of one block have the same
// index and type, and the whole must be sent back as it was.
type detail struct {
	Type      string   `json:"type"`
	Text      string   `json:"text,omitempty"`
	Summary   string   `json:"summary,omitempty"`
	Data      string   `json:"data,omitempty"`
	Signature string   `json:"signature,omitempty"`
	ID        string   `json:"id,omitempty"`
	Format    string   `json:"format,omitempty"`
	Index     *float64 `json:"index,omitempty"`
}

// usage counts tokens. Numbers are floats because some servers write 1.0.
type usage struct {
	Prompt        float64 `json:"prompt_tokens"`
	Completion    float64 `json:"completion_tokens"`
	CacheHit      float64 `json:"prompt_cache_hit_tokens"` // DeepSeek
	PromptDetails struct {
		Cached     float64 `json:"cached_tokens"`
		CacheWrite float64 `json:"cache_write_tokens"` // OpenRouter
	} `json:"prompt_tokens_details"`
	CompletionDetails struct {
		Reasoning float64 `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`
}
