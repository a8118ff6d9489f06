package piwire

var (
	userFields      = closed("id", "role", "content", "timestamp")
	assistantFields = closed("id", "role", "content", "model", "?responseModel", "?usage", "timestamp", "status",
		"?stopReason", "?errorMessage")
	toolFields = closed("id", "role", "toolCallId", "toolName", "input", "content", "?details", "?usage", "timestamp",
		"status", "isError")
	textFields     = closed("type", "text")
	thinkingFields = closed("type", "thinking", "?redacted")
	imageFields    = closed("type", "data", "mimeType")
	toolCallFields = closed("type", "toolCallId", "toolName", "input")
	usageFields    = closed("input", "output", "cacheRead", "cacheWrite", "?reasoning", "totalTokens", "cost")
	costFields     = closed("input", "output", "cacheRead", "cacheWrite", "total")
)

func (d *decoder) item() Item {
	switch string(d.peek("role")) {
	case "user":
		return d.user()
	case "assistant":
		return d.assistant()
	case "tool":
		return d.tool()
	default:
		d.bad = true
		return nil
	}
}

func (d *decoder) user() *UserItem {
	it := &UserItem{}
	for o := d.open(userFields); o.next(); {
		switch o.key {
		case "id":
			it.ID = d.full()
		case "role":
			d.known()
		case "content":
			it.Content = list(d, (*decoder).plainBlock)
		case "timestamp":
			it.Timestamp = d.count(0)
		}
	}
	return it
}

func (d *decoder) assistant() *AssistantItem {
	it := &AssistantItem{}
	for o := d.open(assistantFields); o.next(); {
		switch o.key {
		case "id":
			it.ID = d.full()
		case "role":
			d.known()
		case "content":
			it.Content = list(d, (*decoder).assistantBlock)
		case "model":
			it.Model = d.modelRef()
		case "responseModel":
			it.ResponseModel = d.full()
		case "usage":
			it.Usage = d.usage()
		case "timestamp":
			it.Timestamp = d.count(0)
		case "status":
			it.Status = word(d, assistantStatuses)
		case "stopReason":
			it.StopReason = word(d, stopReasons)
		case "errorMessage":
			it.ErrorMessage = d.optionalText()
		}
	}
	d.bad = d.bad || !it.consistent()
	return it
}

func (d *decoder) tool() *ToolItem {
	it := &ToolItem{}
	var isError bool
	for o := d.open(toolFields); o.next(); {
		switch o.key {
		case "id":
			it.ID = d.full()
		case "role":
			d.known()
		case "toolCallId":
			it.ToolCallID = d.full()
		case "toolName":
			it.ToolName = d.full()
		case "input":
			it.Input = d.value()
		case "content":
			it.Content = list(d, (*decoder).plainBlock)
		case "details":
			it.Details = d.value()
		case "usage":
			it.Usage = d.usage()
		case "timestamp":
			it.Timestamp = d.count(0)
		case "status":
			it.Status = word(d, toolStatuses)
		case "isError":
			isError = d.boolean()
		}
	}
	d.bad = d.bad || isError != (it.Status == ToolError)
	return it
}

// plainBlock reads a block of a user or tool item.
func (d *decoder) plainBlock() Block {
	switch string(d.peek("type")) {
	case "text":
		return d.textBlock()
	case "image":
		return d.image()
	default:
		d.bad = true
		return nil
	}
}

func (d *decoder) assistantBlock() Block {
	switch string(d.peek("type")) {
	case "text":
		return d.textBlock()
	case "thinking":
		return d.thinking()
	case "toolCall":
		return d.toolCall()
	default:
		d.bad = true
		return nil
	}
}

func (d *decoder) textBlock() *Text {
	b := &Text{}
	for o := d.open(textFields); o.next(); {
		switch o.key {
		case "type":
			d.known()
		case "text":
			b.Text = d.text()
		}
	}
	return b
}

func (d *decoder) thinking() *Thinking {
	b := &Thinking{}
	for o := d.open(thinkingFields); o.next(); {
		switch o.key {
		case "type":
			d.known()
		case "thinking":
			b.Thinking = d.text()
		case "redacted":
			redacted := d.boolean()
			b.Redacted = &redacted
		}
	}
	return b
}

func (d *decoder) image() *Image {
	b := &Image{}
	for o := d.open(imageFields); o.next(); {
		switch o.key {
		case "type":
			d.known()
		case "data":
			b.Data = d.text()
		case "mimeType":
			b.MimeType = d.full()
		}
	}
	return b
}

func (d *decoder) toolCall() *ToolCall {
	b := &ToolCall{}
	for o := d.open(toolCallFields); o.next(); {
		switch o.key {
		case "type":
			d.known()
		case "toolCallId":
			b.ToolCallID = d.full()
		case "toolName":
			b.ToolName = d.full()
		case "input":
			b.Input = d.value()
		}
	}
	return b
}

func (d *decoder) usage() *Usage {
	u := &Usage{}
	for o := d.open(usageFields); o.next(); {
		switch o.key {
		case "input":
			u.Input = d.count(0)
		case "output":
			u.Output = d.count(0)
		case "cacheRead":
			u.CacheRead = d.count(0)
		case "cacheWrite":
			u.CacheWrite = d.count(0)
		case "reasoning":
			n := d.count(0)
			u.Reasoning = &n
		case "totalTokens":
			u.TotalTokens = d.count(0)
		case "cost":
			u.Cost = d.usageCost()
		}
	}
	return u
}

func (d *decoder) usageCost() (c UsageCost) {
	for o := d.open(costFields); o.next(); {
		switch o.key {
		case "input":
			c.Input = d.money()
		case "output":
			c.Output = d.money()
		case "cacheRead":
			c.CacheRead = d.money()
		case "cacheWrite":
			c.CacheWrite = d.money()
		case "total":
			c.Total = d.money()
		}
	}
	return c
}
