from xrecal.diagnostics.comparison import Table

TABLE = Table(
    ["", "raw", "new"],
    [["CRPS", "1.25 K", "0.9 K"], ["p < 0.05 & more", "<0.001", ""]],
    "9 cases",
)


def test_text_has_columns_of_equal_width():
    assert TABLE.text().splitlines() == [
        "                    raw    new",
        "CRPS             1.25 K  0.9 K",
        "p < 0.05 & more  <0.001",
        "9 cases",
    ]


def test_html_is_escaped():
    html = TABLE.html()
    assert html.startswith("<table><thead><tr><th")
    assert "p &lt; 0.05 &amp; more" in html
    assert "&lt;0.001" in html
    assert html.count("<tr>") == 3
    assert html.count('<td style="text-align: right">') == 4
    assert html.endswith("<p>9 cases</p>")
