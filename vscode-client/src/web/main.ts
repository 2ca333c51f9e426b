// The page of `tiller web`: the panel of VS Code over another host.

import "./install.js";
import "../webview/panel.js";
import "./style/web.css";
