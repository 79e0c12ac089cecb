(function () {
  var scenario = document.getElementById("scenario");
  var policy = document.getElementById("policy");
  document.getElementById("choice").hidden = false;
  scenario.addEventListener("change", function () {
    document.querySelectorAll("section").forEach(function (section) {
      section.hidden = scenario.value !== "" && section.id !== scenario.value;
    });
  });
  policy.addEventListener("change", function () {
    document.querySelectorAll("details").forEach(function (details) {
      details.open = details.className === policy.value;
    });
  });
})();
