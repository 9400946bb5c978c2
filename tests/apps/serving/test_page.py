"""The page in a real browser."""


from tests.support import browser


@browser.in_a_browser
class TestPage:
    def ask(self, page, client, signature, *texts):
        """Opens the page, types with the keyboard alone, and waits for an answer or an error."""
        page.open(client.address)
        page.wait_for("!document.getElementById('form').hidden")
        page.script("document.querySelector(`input[value=${arguments[0]}]`).click();"
                    "document.querySelector('textarea').focus()", signature)
        page.keys("\ue004".join(texts))
        page.hold("\ue009", "\ue007")
        page.wait_for("['result', 'error'].some(id => !document.getElementById(id).hidden)")

    def test_it_shows_the_model_and_its_signatures_of_texts(self, page, texts, numbers):
        self.ask(page, texts, "tags", "a")
        assert page.texts_of("#name, #version") == ["texts", "version 2"]
        assert page.texts_of("#choices label") == [
            "serving_default", "question_answering", "replaced_words", "similarity", "tags"]
        self.ask(page, numbers, "slow", "a")
        assert page.texts_of("#choices label") == [
            "batch_size", "count", "refuses_bad", "slow", "tokens"]

    def test_replaced_words_are_colored_and_say_their_number(self, page, texts):
        self.ask(page, texts, "replaced_words", "a extraordinarily")
        assert page.texts_of(".word") == ["a", "extraordinarily"]
        numbers = page.script("return [...document.querySelectorAll('.word')]"
                              ".map(node => node.dataset.number)")
        assert numbers == ["15.4 %", "91.8 %"]  # 1 - exp(-1/6) and 1 - exp(-15/6).

    def test_an_answer_is_marked_where_it_stands(self, page, texts):
        self.ask(page, texts, "question_answering", "Who?", "Zo\u00eb\U0001f600 asked")
        # Five characters, of which one takes two units of JavaScript's strings.
        assert page.texts_of("mark") == ["Zo\u00eb\U0001f600 "]
        assert page.texts_of(".context") == ["Zo\u00eb\U0001f600 asked"]
        assert page.texts_of("#result .bar") == ["No answer10.0 %"]

    def test_markup_is_shown_as_text(self, page, texts):
        evil = "<img/src=x/onerror=document.title='broken'>"
        self.ask(page, texts, "tags", evil)
        assert page.texts_of(".chip span:first-child") == [evil]
        assert page.script("return [document.title, document.images.length]") == ["texts", 0]

    def test_errors_are_seen(self, page, numbers):
        self.ask(page, numbers, "refuses_bad", "bad")
        (message,) = page.texts_of("#error:not([hidden])")
        assert "bad is not allowed" in message
        page.keys(" no more")
        page.hold("\ue009", "\ue007")
        page.wait_for("!document.getElementById('result').hidden")
        assert page.texts_of("#error:not([hidden])") == []
